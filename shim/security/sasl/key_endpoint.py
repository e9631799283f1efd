"""Reads the document of keys that a URL has (Kafka: HttpsJwks, JaasOptionsUtils)."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, build_opener

from kafka_shim.security.tls.context import login_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar
    from urllib.request import BaseHandler, OpenerDirector, Request

    Key = TypeVar("Key")

# How long the reading of a document may be silent, and how long it may take in all.
FETCH_SECONDS = 10.0
LONGEST_FETCH_SECONDS = 20.0
CHUNK_BYTES = 1 << 16
LARGEST_DOCUMENT_BYTES = 1 << 20


class KeyEndpoint:
    """An `http:` or `https:` URL. Event-loop thread only."""

    def __init__(self, url: str, login: Mapping[str, str]) -> None:
        """`login`: the options of the login module, of which those of TLS hold. Raises ConfigError."""
        self._url = url
        # Without the proxies of the environment, of which Java knows nothing: they could give other keys.
        handlers: list[BaseHandler] = [_StaysWithScheme(), ProxyHandler({})]
        if urlsplit(url).scheme == "https":
            handlers.append(HTTPSHandler(context=login_context(login)))
        self._opener = build_opener(*handlers)

    async def read(self, parse: Callable[[bytes], list[Key]]) -> list[Key]:
        """Return what `parse` finds in the document, which has one byte more than the largest if it has more. The
        thread that reads it calls `parse`: of thousands of keys it takes long. Raises OSError, HTTPException, and as
        `parse`."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Key]] = loop.create_future()

        def run() -> None:
            keys, error = self._attempt(parse)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_tell, answer, keys, error)

        # Not of the loop's executor: a stop would wait for a URL that does not answer.
        threading.Thread(target=run, name="kafka-shim-keys", daemon=True).start()
        return await answer

    def _attempt(self, parse: Callable[[bytes], list[Key]]) -> tuple[list[Key], Exception | None]:
        try:
            return parse(_fetch(self._opener, self._url)), None
        except HTTPError as error:
            error.close()
            return [], error
        except Exception as error:
            return [], error


def _tell(answer: asyncio.Future[list[Key]], keys: list[Key], error: Exception | None) -> None:
    if answer.done():  # cancelled
        return
    if error is None:
        answer.set_result(keys)
    else:
        answer.set_exception(error)


class _StaysWithScheme(HTTPRedirectHandler):
    """As Java's HttpURLConnection, follows to another URL of the same scheme alone: what answers by `http:` to who has
    asked by `https:` has proved nothing."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(opener: OpenerDirector, url: str) -> bytes:
    ends_s = time.monotonic() + LONGEST_FETCH_SECONDS
    document = bytearray()
    with opener.open(url, timeout=FETCH_SECONDS) as answer:
        while len(document) <= LARGEST_DOCUMENT_BYTES and (chunk := answer.read1(CHUNK_BYTES)):
            document += chunk
            if time.monotonic() > ends_s:
                raise TimeoutError(f"it is not whole after {LONGEST_FETCH_SECONDS:.0f} s")
    return bytes(document)

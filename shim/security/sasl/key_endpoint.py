"""Reads the document of keys that a URL has (Kafka: HttpsJwks, JaasOptionsUtils)."""

from __future__ import annotations

import time
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, build_opener

from kafka_shim.security.tls.context import login_context
from kafka_shim.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar
    from urllib.request import BaseHandler, OpenerDirector, Request

    from kafka_shim.clock import Clock

    Key = TypeVar("Key")

# How long the reading of a document may be silent, and how long it may take in all.
FETCH_SECONDS = 10.0
LONGEST_FETCH_SECONDS = 20.0
CHUNK_BYTES = 1 << 16
LARGEST_DOCUMENT_BYTES = 1 << 20


class KeyEndpoint:
    """An `http:` or `https:` URL. Event-loop thread only."""

    def __init__(self, url: str, login: Mapping[str, str], clock: Clock) -> None:
        """`login`: the options of the login module, of which those of TLS hold. Raises ConfigError."""
        self._url = url
        self._workers = Workers(clock, "kafka-shim-keys", 1)
        # Without the proxies of the environment, of which Java knows nothing: they could give other keys.
        handlers: list[BaseHandler] = [_StaysWithScheme(), ProxyHandler({})]
        if urlsplit(url).scheme == "https":
            handlers.append(HTTPSHandler(context=login_context(login)))
        self._opener = build_opener(*handlers)

    async def read(self, parse: Callable[[bytes], list[Key]]) -> list[Key]:
        """Return what `parse` finds in the document, which has one byte more than the largest if it has more. The
        thread that reads it calls `parse`: of thousands of keys it takes long. Raises OSError, HTTPException, and as
        `parse`; RuntimeError if no thread can be started."""
        return await self._workers.begin(self._attempt, parse)  # a stop does not wait for a URL that does not answer

    def _attempt(self, parse: Callable[[bytes], list[Key]]) -> list[Key]:
        try:
            return parse(_fetch(self._opener, self._url))
        except HTTPError as error:
            error.close()
            raise


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

"""Streams of asyncio to a broker's listener with TLS or SASL, for the wiretap."""

from __future__ import annotations

import asyncio
import ssl

from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.wire_client import ConnectionLostError, WireClientError, read_answer
from kafka_shim.wiretap.recorder import close, read_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client_security import ClientSecurity

LOGIN_SECONDS = 30.0
LIMIT_BYTES = 1 << 20


class SecuredDialler:
    """Opens streams and logs in, before anything else is sent."""

    def __init__(self, security: ClientSecurity) -> None:
        self._security = security

    async def __call__(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises OSError, with the reason of a login that failed."""
        context = self._security.tls_context
        try:
            reader, writer = await asyncio.open_connection(
                host, port, ssl=context, server_hostname=host if context is not None else None, limit=LIMIT_BYTES
            )
        except ssl.SSLError as err:
            raise OSError(f"no TLS with {host}: {getattr(err, 'verify_message', None) or err.reason or err}") from err
        requests = _Requests(host, reader, writer, asyncio.get_running_loop())
        try:
            await asyncio.to_thread(self._security.log_in, requests)
        except WireClientError as err:
            await close(writer)
            raise OSError(str(err)) from err
        except BaseException:
            writer.close()
            raise
        return reader, writer


class _Requests:
    """Sends the requests of a login, whose steps are those of a thread, on the loop's streams."""

    def __init__(
        self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.host = host
        self._reader = reader
        self._writer = writer
        self._loop = loop

    def request(self, message: Any, version: int | None = None) -> Any:
        assert version is not None
        return asyncio.run_coroutine_threadsafe(self._request(message, version), self._loop).result(LOGIN_SECONDS)

    async def _request(self, message: Any, version: int) -> Any:
        self._writer.write(encode_request_frame(message, version, 0, "kafka-shim-cli"))
        frame = await read_frame(self._reader)
        if frame is None:
            raise ConnectionLostError("the broker closed the connection during the login")
        return read_answer(message.API_KEY, version, frame)[1]

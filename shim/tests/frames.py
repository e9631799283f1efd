"""For APIs that are served from frame to frame: a client that sends frames which the broker may not be able to read,
and which way they took."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kafka_shim.api import TABLE
from kafka_shim.embedded import Broker
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest

PROBE_ID = 1 << 30
PROBE = encode_request_frame(ApiVersionsRequest(), 0, PROBE_ID)


@contextmanager
def counted(module: ModuleType, is_short: bool) -> Iterator[Counter[str]]:
    """The requests that come to the handler of an API's module; all of them unless `is_short`."""
    api = TABLE[module.KEY]
    ways: Counter[str] = Counter()

    def handle(context: Any, request: Any) -> Any:
        ways["handler" if context.done is None else "rest"] += 1
        return module.handle(context, request)

    api.handle, api.plain = handle, module.PLAIN if is_short else None
    try:
        yield ways
    finally:
        api.handle, api.plain = module.handle, module.PLAIN


class FrameClient:
    """Sends frames, and remembers what came back."""

    def __init__(self, broker: Broker) -> None:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        self._address = host, int(port)
        self._socket = socket.create_connection(self._address, timeout=60)
        self.answers: list[bytes] = []

    def send(self, frame: bytes) -> None:
        """Whether there is an answer depends on the frame, so another request follows, which has one."""
        try:
            self._socket.sendall(frame + PROBE)
            while not (answer := self._read()).startswith(PROBE_ID.to_bytes(4)):
                self.answers.append(answer)
        except (ConnectionError, EOFError):
            self.answers.append(b"closed")
            self._socket.close()
            self._socket = socket.create_connection(self._address, timeout=60)

    def _read(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4)))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def close(self) -> None:
        self._socket.close()

"""A client that sends frames which the broker may not be able to read."""

from __future__ import annotations

import socket

from kafka_shim.embedded import Broker
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest

PROBE_ID = 1 << 30
PROBE = encode_request_frame(ApiVersionsRequest(), 0, PROBE_ID)


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

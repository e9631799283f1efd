"""A request that a broker may delay (purgatory), on its own connection."""

from __future__ import annotations

import select

from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.message import Message

# After this many responses on another connection the broker has also processed the delayed request.
ROUND_TRIPS = 20


class Parked:
    """Sends the request when created. `receive` waits for the response and closes the connection."""

    def __init__(self, bootstrap: str, message: Message, version: int, *, client_id: str, timeout_s: float) -> None:
        self.message, self.version = message, version
        self._bootstrap, self._timeout_s = bootstrap, timeout_s
        self.connection = Connection(bootstrap, client_id=client_id, timeout_s=timeout_s)
        self.connection.send(message, version)

    @property
    def is_waiting(self) -> bool:
        """Returns whether there is still no response after the broker has responded to other requests."""
        with Connection(self._bootstrap, timeout_s=self._timeout_s) as other:
            for _ in range(ROUND_TRIPS):
                other.request(ApiVersionsRequest(), 0)
        return not select.select([self.connection._socket], [], [], 0)[0]

    def receive(self) -> Any:
        """Returns the response. Raises WireClientError."""
        with self.connection:
            return self.connection.receive(self.message.API_KEY, self.version)[1]

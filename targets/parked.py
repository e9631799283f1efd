"""A request that a broker may hold back, on a connection of its own."""

from __future__ import annotations

import select

from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.message import Message

# Long for a broker that has no reason to wait.
A_WHILE_S = 0.4


class Parked:
    """Sent when it is made; `receive` waits for the answer and closes the connection."""

    def __init__(self, bootstrap: str, message: Message, version: int, *, client_id: str, timeout_s: float) -> None:
        self.message, self.version = message, version
        self.connection = Connection(bootstrap, client_id=client_id, timeout_s=timeout_s)
        self.connection.send(message, version)

    @property
    def is_waiting(self) -> bool:
        """Still after a while."""
        return not select.select([self.connection._socket], [], [], A_WHILE_S)[0]

    def receive(self) -> Any:
        """The answer. Raises WireClientError."""
        with self.connection:
            return self.connection.receive(self.message.API_KEY, self.version)[1]

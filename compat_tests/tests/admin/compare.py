"""Send one request to both brokers and compare the answers, field by field."""

from __future__ import annotations

import re
from typing import Any

from kafka_shim.compat.comparison import lines
from kafka_shim.protocol.message import Message
from kafka_shim.wire_client import Connection, WireClientError


def plain(value: Any) -> Any:
    """An answer in a form that two brokers can agree on: no order where Kafka has that of a hash map, no random ids."""
    if isinstance(value, Message):
        return {row[0]: plain(getattr(value, row[0])) for row in value.FIELDS}
    if isinstance(value, list | tuple):
        return sorted((plain(one) for one in value), key=repr)
    if isinstance(value, bytes) and len(value) == 16:
        return "an id" if any(value) else "no id"
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, str):
        return re.sub(r"within \[-?\d+, \d+\]", "within what is allowed now", value)
    return value


class Pair:
    """A connection to each broker, replaced when the broker closes it."""

    def __init__(self, shim: str, kafka: str) -> None:
        self._addresses = shim, kafka
        self.shim = Connection(shim)
        self.kafka = Connection(kafka)

    def close(self) -> None:
        self.shim.close()
        self.kafka.close()

    def ask(self, message: Message, versions: Any) -> list[str]:
        """Send `message` to both in each version; answers the differences."""
        return self.ask_each((message, message), versions)

    def ask_each(self, messages: tuple[Message, Message], versions: Any) -> list[str]:
        """Send each broker its message (shim, kafka), for what names a topic id; answers the differences."""
        found = []
        for version in versions:
            self.shim, ours = self._answer(self.shim, 0, messages[0], version)
            self.kafka, theirs = self._answer(self.kafka, 1, messages[1], version)
            found += [f"v{version} {line}" for line in lines(ours, theirs)]
        return found

    def _answer(self, connection: Connection, side: int, message: Message, version: int) -> tuple[Connection, Any]:
        try:
            return connection, plain(connection.request(message, version))
        except WireClientError as err:
            connection.close()
            return Connection(self._addresses[side]), str(err)

"""Send one request to both brokers and compare the answers, field by field."""

from __future__ import annotations

from typing import Any

from shim.protocol.message import Message
from shim.wire_client import Connection, WireClientError


def plain(value: Any) -> Any:
    """An answer in a form that two brokers can agree on: no order where Kafka has that of a hash map, no random ids."""
    if isinstance(value, Message):
        return {row[0]: plain(getattr(value, row[0])) for row in value.FIELDS}
    if isinstance(value, list | tuple):
        return sorted((plain(one) for one in value), key=repr)
    if isinstance(value, bytes) and len(value) == 16:
        return "an id" if any(value) else "no id"
    return value


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two plain answers differ, a line each."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [line for key in ours for line in differences(ours[key], theirs.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = zip(ours, theirs, strict=True)
        return [line for one, other in pairs for line in differences(one, other, f"{path}[{_name(one)}]")]
    return [] if ours == theirs else [f"{path}: shim {ours!r}, kafka {theirs!r}"]


def _name(value: Any) -> str:
    return str(value.get("name", "")) if isinstance(value, dict) else ""


class Pair:
    """A connection to each broker."""

    def __init__(self, shim: str, kafka: str) -> None:
        self.shim = Connection(shim)
        self.kafka = Connection(kafka)

    def close(self) -> None:
        self.shim.close()
        self.kafka.close()

    def ask(self, message: Message, versions: Any) -> list[str]:
        """Send `message` to both in each version; answers the differences."""
        found = []
        for version in versions:
            ours = self._answer(self.shim, message, version)
            theirs = self._answer(self.kafka, message, version)
            found += [f"v{version} {line}" for line in differences(ours, theirs)]
        return found

    def _answer(self, connection: Connection, message: Message, version: int) -> Any:
        try:
            return plain(connection.request(message, version))
        except WireClientError as err:
            return str(err)

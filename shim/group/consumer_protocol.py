"""The consumer's messages inside JoinGroup and SyncGroup (Kafka's ConsumerProtocol): subscription and assignment.

Two bytes of version, then ConsumerProtocolSubscription or ConsumerProtocolAssignment in that version. A newer version
is read as 3, as clients do. The bytes come from clients and are opaque to the classic protocol. The broker reads them
only to find which topics a group uses and to convert groups between the protocols. `ConsumerProtocolError` is raised
for bytes that do not parse, or that no record could hold; no rule may use them.
"""

from __future__ import annotations

from struct import Struct

from kafka_shim.cext.messages import decode_prefix, encode
from kafka_shim.protocol.records.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafka_shim.protocol.records.consumer_protocol_subscription import ConsumerProtocolSubscription

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeVar

    from kafka_shim.protocol.message import Message

    M = TypeVar("M", bound=Message)

PROTOCOL_TYPE = "consumer"
LAST_VERSION = 3

# More would not fit the group's record at the default message size.
MAX_BYTES = 1 << 20
# The limit for one subscription: it takes some 10 ms.
MAX_TOPICS = 50_000

_SHORT = Struct(">h")
_INT = Struct(">i")


class ConsumerProtocolError(ValueError):
    """The bytes are not a subscription or an assignment."""


class Subscription:
    """The topics and owned partitions of a classic consumer. `owned` is empty below version 1."""

    __slots__ = ("owned", "rack_id", "topics", "version")

    def __init__(self, version: int, topics: list[str], owned: dict[str, list[int]], rack_id: str | None) -> None:
        self.version = version
        self.topics = topics
        self.owned = owned
        self.rack_id = rack_id


def read_version(data: bytes) -> int:
    """Returns the version of the message, at most LAST_VERSION. Raises ConsumerProtocolError."""
    if len(data) < _SHORT.size:
        raise ConsumerProtocolError("no version")
    version: int = _SHORT.unpack_from(data)[0]
    if version < 0:
        raise ConsumerProtocolError(f"version {version}")
    return min(version, LAST_VERSION)


def _read(message: type[M], data: bytes, version: int) -> M:
    """Returns the message after the version. Trailing bytes are ignored."""
    if len(data) > MAX_BYTES:
        raise ConsumerProtocolError(f"{len(data)} bytes")
    try:
        return decode_prefix(message, version, data, _SHORT.size)[0]
    except ValueError as error:
        raise ConsumerProtocolError(str(error)) from error


def _read_subscription(data: bytes, version: int) -> ConsumerProtocolSubscription:
    if len(data) >= _SHORT.size + _INT.size:
        count = _INT.unpack_from(data, _SHORT.size)[0]
        if count > MAX_TOPICS:
            raise ConsumerProtocolError(f"{count} topics")
    return _read(ConsumerProtocolSubscription, data, version)


def read_subscription(data: bytes) -> Subscription:
    """Returns the subscription in a member's protocol metadata."""
    version = read_version(data)
    found = _read_subscription(data, version)
    owned = {entry.topic: entry.partitions for entry in found.owned_partitions}
    return Subscription(version, found.topics, owned, found.rack_id)


def read_topics(data: bytes) -> list[str]:
    """Returns only the topics of a subscription, parsed as version 0. Fields of newer versions are not checked."""
    read_version(data)
    return _read_subscription(data, 0).topics


def read_assignment(data: bytes) -> tuple[dict[str, list[int]], bytes | None]:
    """Returns (partitions by topic, user data) of a member's assignment."""
    found = _read(ConsumerProtocolAssignment, data, read_version(data))
    return {entry.topic: entry.partitions for entry in found.assigned_partitions}, found.user_data


def write_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    """Returns the bytes of an assignment without user data."""
    assigned = [TopicPartition(topic=topic, partitions=list(numbers)) for topic, numbers in partitions.items()]
    return _SHORT.pack(version) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), version)

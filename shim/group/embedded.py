"""The consumer's own messages inside JoinGroup and SyncGroup: ConsumerProtocolSubscription and -Assignment.

Two bytes of version, then the fields of that version (0-3); a newer version is read as 3, as clients do. They come from
clients and are opaque to the classic protocol; the broker looks inside only to know which topics a group uses and to
move groups between the protocols. `EmbeddedError` for bytes that do not parse, or that no record could hold: no rule
may trust them.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROTOCOL_TYPE = "consumer"
LAST_VERSION = 3

# More would not fit the group's record, with its default of a message's size.
MAX_BYTES = 1 << 20
# Of one subscription: some 10 ms.
MAX_TOPICS = 50_000

_SHORT = Struct(">h")
_INT = Struct(">i")


class EmbeddedError(ValueError):
    """These bytes are not a subscription or an assignment."""


class Subscription:
    """What a classic consumer wants and has; `owned` is empty below version 1."""

    __slots__ = ("owned", "rack_id", "topics", "version")

    def __init__(self, version: int, topics: list[str], owned: dict[str, list[int]], rack_id: str | None) -> None:
        self.version = version
        self.topics = topics
        self.owned = owned
        self.rack_id = rack_id


class _Reader:
    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        if len(data) > MAX_BYTES:
            raise EmbeddedError(f"{len(data)} bytes")
        self.data = bytes(data)
        self.at = 0

    def int16(self) -> int:
        value: int = _SHORT.unpack_from(self.data, self.at)[0]
        self.at += 2
        return value

    def int32(self) -> int:
        value: int = _INT.unpack_from(self.data, self.at)[0]
        self.at += 4
        return value

    def count(self, item_bytes: int) -> int:
        """The length of an array, refused where the rest cannot hold it: memory is bounded by what was sent."""
        value = self.int32()
        if value < 0 or value * item_bytes > len(self.data) - self.at:
            raise EmbeddedError(f"an array of {value} in {len(self.data) - self.at} bytes")
        return value

    def take(self, size: int) -> bytes:
        if size < 0 or size > len(self.data) - self.at:
            raise EmbeddedError(f"{size} bytes wanted, {len(self.data) - self.at} are there")
        self.at += size
        return self.data[self.at - size : self.at]

    def string(self) -> str:
        return self.take(self.int16()).decode()

    def nullable_string(self) -> str | None:
        size = self.int16()
        return None if size < 0 else self.take(size).decode()

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self.take(size)

    def topics(self) -> list[str]:
        count = self.count(2)
        if count > MAX_TOPICS:
            raise EmbeddedError(f"{count} topics")
        return [self.string() for _ in range(count)]

    def topic_partitions(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for _ in range(self.count(6)):
            topic = self.string()
            found[topic] = [self.int32() for _ in range(self.count(4))]
        return found


def read_version(data: bytes) -> int:
    """The version alone."""
    if len(data) < 2:
        raise EmbeddedError("no version")
    version: int = _SHORT.unpack_from(data)[0]
    if version < 0:
        raise EmbeddedError(f"version {version}")
    return min(version, LAST_VERSION)


def read_subscription(data: bytes) -> Subscription:
    """The subscription of a member's protocol metadata."""
    try:
        version = read_version(data)
        reader = _Reader(data)
        reader.at = 2
        topics = reader.topics()
        reader.nullable_bytes()
        owned = reader.topic_partitions() if version >= 1 else {}
        if version >= 2:
            reader.int32()  # generation
        rack_id = reader.nullable_string() if version >= 3 else None
    except (StructError, UnicodeDecodeError) as error:
        raise EmbeddedError(str(error)) from error
    return Subscription(version, topics, owned, rack_id)


def read_topics(data: bytes) -> list[str]:
    """Only the topics, read as version 0: what comes after them may be anything."""
    try:
        read_version(data)
        reader = _Reader(data)
        reader.at = 2
        return reader.topics()
    except (StructError, UnicodeDecodeError) as error:
        raise EmbeddedError(str(error)) from error


def read_assignment(data: bytes) -> tuple[dict[str, list[int]], bytes | None]:
    """(partitions by topic, user data) of a member's assignment."""
    try:
        read_version(data)
        reader = _Reader(data)
        reader.at = 2
        return reader.topic_partitions(), reader.nullable_bytes()
    except (StructError, UnicodeDecodeError) as error:
        raise EmbeddedError(str(error)) from error


def write_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    """The bytes of an assignment without user data."""
    parts = [_SHORT.pack(version), _INT.pack(len(partitions))]
    for topic, numbers in partitions.items():
        name = topic.encode()
        listed = list(numbers)
        parts += [_SHORT.pack(len(name)), name, _INT.pack(len(listed))]
        parts += [_INT.pack(number) for number in listed]
    parts.append(_INT.pack(-1))
    return b"".join(parts)

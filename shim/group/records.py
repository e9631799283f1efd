"""The encoding of `__consumer_offsets` records: a two-byte type before the key, a two-byte version before the value.

A commit writes one record per partition and start-up reads them all, so offsets are encoded and decoded by hand. A test
compares the result with the generated classes, which handle all other records.
"""

from __future__ import annotations

from importlib import import_module
from struct import Struct
from struct import error as StructError

from kafka_shim.cext import messages
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.record_types import GROUP_KEYS, GROUP_VALUES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from kafka_shim.protocol.message import Message

# The written versions. Values of consumer groups only have version 0.
GROUP_METADATA_VERSION = 3
OFFSET_VERSION = 4
# With an explicit retention time (OffsetCommit v2-4) the value contains an expiry time, which only version 1 has.
EXPIRING_OFFSET_VERSION = 1

NO_PRODUCER_ID = -1

OFFSET_COMMIT = 1
GROUP_METADATA = 2

_SHORT = Struct(">h")
_INT = Struct(">i")
_LONG = Struct(">q")
_SHORTS = Struct(">hh")
_OFFSET_HEAD = Struct(">hqi")  # version, offset, leader epoch
_OFFSET_HEAD_1 = Struct(">hq")
_TIMES = Struct(">qq")
_OFFSET_TAG = b"\x01\x00\x10"  # one tag: number 0, 16 bytes


class RecordError(ValueError):
    """A key or value that this version cannot read. Replay skips it with a warning."""


class Record:
    """One record to write and apply. `value` None is a tombstone."""

    __slots__ = ("key", "value", "version")

    def __init__(self, key: Message, value: Message | None = None, version: int = 0) -> None:
        self.key = key
        self.value = value
        self.version = version

    def __repr__(self) -> str:
        return f"Record({self.key!r}, {self.value!r})"

    def encode(self) -> tuple[bytes, bytes | None]:
        """Returns (key bytes, value bytes)."""
        key = _SHORT.pack(self.key.API_KEY) + messages.encode(self.key, 0)
        if self.value is None:
            return key, None
        return key, _SHORT.pack(self.version) + messages.encode(self.value, self.version)


_CLASSES: dict[int, tuple[type[Message], type[Message]]] = {}


def _classes(record_type: int) -> tuple[type[Message], type[Message]]:
    found = _CLASSES.get(record_type)
    if found is None:
        names = GROUP_KEYS[record_type], GROUP_VALUES[record_type]
        places = [name.rpartition(".") for name in names]
        key, value = (
            getattr(import_module(f"kafka_shim.protocol.records.{module}"), name) for module, _, name in places
        )
        found = _CLASSES[record_type] = key, value
    return found


def record_type_of(key: bytes) -> int:
    """Returns the type of a record, from its key. Raises RecordError for a key without one."""
    if len(key) < 2:
        raise RecordError(f"a key of {len(key)} bytes")
    value: int = _SHORT.unpack_from(key)[0]
    return value


def decode(key: bytes, value: bytes | None) -> Record:
    """Decode any record except offsets. Raises RecordError for an unknown type or version, and for bytes that do not
    parse."""
    record_type = record_type_of(key)
    if record_type not in GROUP_KEYS:
        raise RecordError(f"record type {record_type} is unknown")
    key_class, value_class = _classes(record_type)
    try:
        decoded_key: Any = messages.decode(key_class, 0, key, 2)
        if value is None:
            return Record(decoded_key)
        version = _SHORT.unpack_from(value)[0]
        if not value_class.MIN_VERSION <= version <= value_class.MAX_VERSION:
            raise RecordError(f"version {version} of {value_class.__name__} is unknown")
        decoded: Any = messages.decode(value_class, version, value, 2)
    except (messages.WireError, StructError) as error:
        raise RecordError(f"{key_class.__name__}: {error}") from error
    return Record(decoded_key, decoded, version)


# --- offsets


class Committed:
    """One committed offset. `record_offset` is the offset of its record in the log. `expire_ms` is -1 if
    `offsets.retention.minutes` applies. `topic_id` is zero if the commit did not contain it."""

    __slots__ = ("commit_ms", "expire_ms", "leader_epoch", "metadata", "offset", "record_offset", "topic_id")

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_ms: int,
        expire_ms: int = -1,
        topic_id: bytes = ZERO_UUID,
        record_offset: int = -1,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_ms = commit_ms
        self.expire_ms = expire_ms
        self.topic_id = topic_id
        self.record_offset = record_offset


def offset_key_prefix(group_id: str) -> bytes:
    """Returns the common start of a group's offset keys, so that a commit of many partitions encodes the group id
    once."""
    name = group_id.encode()
    return _SHORTS.pack(OFFSET_COMMIT, len(name)) + name


def encode_offset_key(prefix: bytes, topic: str, partition: int) -> bytes:
    """Returns the key of one partition's offset."""
    name = topic.encode()
    return prefix + _SHORT.pack(len(name)) + name + _INT.pack(partition)


def encode_offset(committed: Committed) -> bytes:
    """Returns the value of an offset record."""
    text = committed.metadata.encode()
    if committed.expire_ms != -1:
        return b"".join(
            (
                _OFFSET_HEAD_1.pack(EXPIRING_OFFSET_VERSION, committed.offset),
                _SHORT.pack(len(text)),
                text,
                _TIMES.pack(committed.commit_ms, committed.expire_ms),
            )
        )
    tag = b"\0" if committed.topic_id == ZERO_UUID else _OFFSET_TAG + committed.topic_id
    return b"".join(
        (
            _OFFSET_HEAD.pack(OFFSET_VERSION, committed.offset, committed.leader_epoch),
            _uvarint(len(text) + 1),
            text,
            _LONG.pack(committed.commit_ms),
            tag,
        )
    )


def encode_offsets(
    entries: Iterable[tuple[str, str, int, Committed | None]],
) -> Iterator[tuple[bytes, bytes | None]]:
    """Returns (key, value) of each (group, topic, partition, offset or None for its tombstone)."""
    last_group, prefix = None, b""
    for group_id, topic, partition, committed in entries:
        if group_id != last_group:
            last_group, prefix = group_id, offset_key_prefix(group_id)
        yield encode_offset_key(prefix, topic, partition), None if committed is None else encode_offset(committed)


def _uvarint(value: int) -> bytes:
    if value < 0x80:
        return value.to_bytes(1, "big")
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def decode_offset_key(key: bytes) -> tuple[str, str, int]:
    """Returns (group id, topic, partition). Also reads the legacy type, whose layout is the same."""
    try:
        size = _SHORT.unpack_from(key, 2)[0]
        at = 4 + size
        group_id = key[4:at].decode()
        size = _SHORT.unpack_from(key, at)[0]
        topic = key[at + 2 : at + 2 + size].decode()
        return group_id, topic, _INT.unpack_from(key, at + 2 + size)[0]
    except (StructError, UnicodeDecodeError) as error:
        raise RecordError(f"offset key: {error}") from error


def decode_offset(value: bytes, record_offset: int) -> Committed:
    """Decode an offset value of version 0 to 4."""
    _, value_class = _classes(OFFSET_COMMIT)
    try:
        version = _SHORT.unpack_from(value)[0]
        if not 0 <= version <= OFFSET_VERSION:
            raise RecordError(f"version {version} of an offset is unknown")
        found: Any = messages.decode(value_class, version, value, 2)
    except (messages.WireError, StructError) as error:
        raise RecordError(f"offset: {error}") from error
    return Committed(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp,
        found.expire_timestamp,
        found.topic_id,
        record_offset,
    )

"""The encoding of `__consumer_offsets` records: a two-byte type before the key, a two-byte version before the value.

A commit writes one record per partition, so offsets are encoded by hand (`cext.offset_records`). A test compares the
result with the generated classes, which handle all other records.
"""

from __future__ import annotations

from importlib import import_module
from struct import Struct
from struct import error as StructError

from kafka_shim.cext import messages
from kafka_shim.cext.offset_records import Committed, encode_offsets
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.record_types import GROUP_KEYS, GROUP_VALUES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.message import Message

    # (topic, partition, offset to write; None for its tombstone)
    Changes = list[tuple[str, int, Committed | None]]
    # An entry of the builder of batches: key, value, timestamp, headers.
    Entry = tuple[bytes, bytes | None, int, tuple[()]]

# The written versions. Values of consumer groups only have version 0.
GROUP_METADATA_VERSION = 3
OFFSET_VERSION = 4

NO_PRODUCER_ID = -1

OFFSET_COMMIT = 1

_SHORT = Struct(">h")
_INT = Struct(">i")


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


class GroupRecord(Record):
    """The record of a classic group with members, whose value is written already: a message of each member would be
    made for that alone. Who asks for the value has it read."""

    __slots__ = ("_written", "generation", "member_count", "protocol")

    def __init__(self, key: Message, written: bytes, generation: int, protocol: str | None, member_count: int) -> None:
        self.key = key
        self.version = GROUP_METADATA_VERSION
        self._written = written
        self.generation = generation
        self.protocol = protocol
        self.member_count = member_count

    def __getattr__(self, name: str) -> Any:
        if name != "value":
            raise AttributeError(name)
        self.value = decode(self._key_bytes(), self._written).value
        return self.value

    def _key_bytes(self) -> bytes:
        return _SHORT.pack(self.key.API_KEY) + messages.encode(self.key, 0)

    def encode(self) -> tuple[bytes, bytes | None]:
        return self._key_bytes(), self._written


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


def offset_entries(group_id: str, changes: Changes, now_ms: int) -> list[Entry]:
    """Returns the entries of a batch with the records of these offsets and tombstones of a group. Raises
    UNKNOWN_SERVER_ERROR for one that no record can hold: names may be longer in requests than in records."""
    try:
        return encode_offsets(group_id, changes, now_ms)
    except messages.EncodeError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def decode_offset_key(key: bytes) -> tuple[str, str, int]:
    """Returns (group id, topic, partition). Also reads the legacy type, whose layout is the same. Raises
    RecordError."""
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
    """Decode an offset value of version 0 to 4. Raises RecordError."""
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

"""The framing of records in internal topics.

- ``__consumer_offsets``, ``__transaction_state`` and ``__share_group_state``: two bytes of record type before the key,
  two bytes of version before the value (Kafka's ``CoordinatorRecordSerde``).
- ``__cluster_metadata``: frame version, type and version as unsigned varints before the record
  (``AbstractApiMessageSerde``).
- Control records: the key is two bytes of key version and two of type, the value is the message without a prefix
  (``MemoryRecordsBuilder``). Only the value of a transaction marker has two bytes of version before it
  (``EndTransactionMarker``).
"""

from __future__ import annotations

from importlib import import_module

from kafka_shim.cext.messages import UnsupportedVersionError, WireError, decode, decode_prefix, encode
from kafka_shim.cext.wire import Reader, Writer
from kafka_shim.protocol.record_types import (
    GROUP_KEYS,
    GROUP_VALUES,
    METADATA_RECORDS,
    SHARE_KEYS,
    SHARE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.protocol.message import Buffer, Message

METADATA_FRAME_VERSION = 1


class ControlType:
    """Types of control records (``ControlRecordType``)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


CONTROL_RECORDS = {
    ControlType.ABORT: "end_txn_marker.EndTxnMarker",
    ControlType.COMMIT: "end_txn_marker.EndTxnMarker",
    ControlType.LEADER_CHANGE: "leader_change_message.LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "snapshot_header_record.SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "snapshot_footer_record.SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "kraft_version_record.KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "voters_record.VotersRecord",
}


class UnknownRecordError(ValueError):
    """An unknown record type, or an unknown version of a known type. Kafka skips such records with a warning."""


def record_class(path: str) -> type[Message]:
    """Returns the class for a path such as ``"offset_commit_value.OffsetCommitValue"``; imports its module on first
    use.
    """
    module, _, name = path.partition(".")
    found: type[Message] = getattr(import_module(f"kafka_shim.protocol.records.{module}"), name)
    return found


class CoordinatorRecords:
    """The record types of one internal topic. Looks up each class once."""

    def __init__(self, keys: dict[int, str], values: dict[int, str]) -> None:
        self._paths = {number: (keys[number], values[number]) for number in keys}
        self._classes: dict[int, tuple[type[Message], type[Message]]] = {}

    def classes(self, record_type: int) -> tuple[type[Message], type[Message]]:
        """Returns (key class, value class). Raises UnknownRecordError."""
        found = self._classes.get(record_type)
        if found is None:
            paths = self._paths.get(record_type)
            if paths is None:
                raise UnknownRecordError(f"no record has the type {record_type}")
            found = self._classes[record_type] = (record_class(paths[0]), record_class(paths[1]))
        return found

    def decode_key(self, key: Buffer) -> Message:
        """Decodes the key of a record; its ``API_KEY`` is the record type. Raises UnknownRecordError, WireError."""
        record_type = Reader(key).int16()
        # Keys have only version 0. Trailing bytes are ignored, as in Kafka.
        return decode_prefix(self.classes(record_type)[0], 0, key, 2)[0]

    def decode_value(self, record_type: int, value: Buffer) -> Message:
        """Decodes the value of a record of this type. Raises UnknownRecordError, also for an unknown version, and
        WireError.
        """
        version = Reader(value).int16()
        try:
            return decode_prefix(self.classes(record_type)[1], version, value, 2)[0]
        except UnsupportedVersionError as err:
            raise UnknownRecordError(str(err)) from err

    def decode(self, key: Buffer, value: Buffer | None) -> tuple[Message, Message | None]:
        """Returns (key, value). The value is None for a tombstone."""
        read = self.decode_key(key)
        return read, None if value is None else self.decode_value(read.API_KEY, value)


GROUP = CoordinatorRecords(GROUP_KEYS, GROUP_VALUES)
TRANSACTION = CoordinatorRecords(TRANSACTION_KEYS, TRANSACTION_VALUES)
SHARE = CoordinatorRecords(SHARE_KEYS, SHARE_VALUES)


def encode_key(key: Message) -> bytes:
    """Returns the key of a coordinator record: its type, then the message."""
    return key.API_KEY.to_bytes(2, "big") + encode(key, 0)


def encode_value(value: Message, version: int) -> bytes:
    """Returns the value of a coordinator record: the version, then the message."""
    return version.to_bytes(2, "big") + encode(value, version)


_metadata_classes: dict[int, type[Message]] = {}


def encode_metadata(record: Message, version: int) -> bytes:
    """Returns the value of a metadata log record."""
    frame = Writer()
    frame.uvarint(METADATA_FRAME_VERSION)
    frame.uvarint(record.API_KEY)
    frame.uvarint(version)
    return frame.finish() + encode(record, version)


def decode_metadata(value: Buffer) -> tuple[Message, int]:
    """Returns (record, version) from the value of a metadata log record.

    Raises UnknownRecordError for an unknown frame version, type or version, and WireError for invalid or trailing
    bytes.
    """
    reader = Reader(value)
    frame_version, record_type, version = reader.uvarint(), reader.uvarint(), reader.uvarint()
    if frame_version != METADATA_FRAME_VERSION:
        raise UnknownRecordError(f"a metadata record in frame version {frame_version}")
    found = _metadata_classes.get(record_type)
    if found is None:
        if record_type not in METADATA_RECORDS:
            raise UnknownRecordError(f"no metadata record has the type {record_type}")
        found = _metadata_classes[record_type] = record_class(METADATA_RECORDS[record_type])
    if not found.MIN_VERSION <= version <= found.MAX_VERSION:
        raise UnknownRecordError(f"{found.__name__} has no version {version}")
    return decode(found, version, value, reader.position), version


def encode_control(control_type: int, message: Message) -> tuple[bytes, bytes]:
    """Returns (key, value) of a control record in version 0. Only the value of a transaction marker starts with its
    version."""
    key = b"\0\0" + control_type.to_bytes(2, "big")
    value = encode(message, 0)
    return key, value if control_type > ControlType.COMMIT else b"\0\0" + value


def decode_control(key: Buffer, value: Buffer) -> tuple[int, Message | None]:
    """Returns (control type, message); the message is None for an unknown type. Raises WireError.

    A marker of a later version is decoded as the highest known version, as ``EndTransactionMarker`` does.
    """
    reader = Reader(key)
    if reader.int16() < 0:
        raise WireError("a control record with a negative version")
    control_type = reader.int16()
    path = CONTROL_RECORDS.get(control_type)
    if path is None:
        return control_type, None
    start = 0
    if control_type <= ControlType.COMMIT:
        if Reader(value).int16() < 0:
            raise WireError("a transaction marker with a negative version")
        start = 2
    # KRaft messages have their version as the first field; it is 0 for all of them so far.
    return control_type, decode_prefix(record_class(path), 0, value, start)[0]

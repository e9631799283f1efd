"""RemoteLogSegmentMetadataRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class TopicIdPartitionEntry(Message):
    __slots__ = ("name", "id", "partition")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("id", "uuid", "0+", ZERO_UUID),
        ("partition", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        id: bytes = ZERO_UUID
        partition: int = 0


class RemoteLogSegmentIdEntry(Message):
    __slots__ = ("topic_id_partition", "id")
    FIELDS = (
        ("topic_id_partition", "TopicIdPartitionEntry", "0+", ()),
        ("id", "uuid", "0+", ZERO_UUID),
    )

    if TYPE_CHECKING:
        topic_id_partition: TopicIdPartitionEntry = EMPTY
        id: bytes = ZERO_UUID


class SegmentLeaderEpochEntry(Message):
    __slots__ = ("leader_epoch", "offset")
    FIELDS = (
        ("leader_epoch", "int32", "0+", 0),
        ("offset", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        leader_epoch: int = 0
        offset: int = 0


class RemoteLogSegmentMetadataRecord(Message):
    __slots__ = (
        "remote_log_segment_id",
        "start_offset",
        "end_offset",
        "broker_id",
        "max_timestamp_ms",
        "event_timestamp_ms",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "custom_metadata",
        "remote_log_segment_state",
        "txn_index_empty",
    )
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("remote_log_segment_id", "RemoteLogSegmentIdEntry", "0+", ()),
        ("start_offset", "int64", "0+", 0),
        ("end_offset", "int64", "0+", 0),
        ("broker_id", "int32", "0+", 0),
        ("max_timestamp_ms", "int64", "0+", 0),
        ("event_timestamp_ms", "int64", "0+", 0),
        ("segment_leader_epochs", "[]SegmentLeaderEpochEntry", "0+", ()),
        ("segment_size_in_bytes", "int32", "0+", 0),
        ("custom_metadata", "bytes", "0+", None, "0+"),
        ("remote_log_segment_state", "int8", "0+", 0),
        ("txn_index_empty", "bool", "0+", False, "", False, 0, "0+"),
    )

    if TYPE_CHECKING:
        remote_log_segment_id: RemoteLogSegmentIdEntry = EMPTY
        start_offset: int = 0
        end_offset: int = 0
        broker_id: int = 0
        max_timestamp_ms: int = 0
        event_timestamp_ms: int = 0
        segment_leader_epochs: list[SegmentLeaderEpochEntry] = EMPTY
        segment_size_in_bytes: int = 0
        custom_metadata: bytes | None = None
        remote_log_segment_state: int = 0
        txn_index_empty: bool = False

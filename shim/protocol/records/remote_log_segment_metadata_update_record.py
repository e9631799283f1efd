"""RemoteLogSegmentMetadataUpdateRecord, version 0. Written by transcribe.py: change nothing here."""

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


class RemoteLogSegmentMetadataUpdateRecord(Message):
    __slots__ = (
        "remote_log_segment_id",
        "broker_id",
        "event_timestamp_ms",
        "custom_metadata",
        "remote_log_segment_state",
    )
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("remote_log_segment_id", "RemoteLogSegmentIdEntry", "0+", ()),
        ("broker_id", "int32", "0+", 0),
        ("event_timestamp_ms", "int64", "0+", 0),
        ("custom_metadata", "bytes", "0+", None, "0+"),
        ("remote_log_segment_state", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        remote_log_segment_id: RemoteLogSegmentIdEntry = EMPTY
        broker_id: int = 0
        event_timestamp_ms: int = 0
        custom_metadata: bytes | None = None
        remote_log_segment_state: int = 0

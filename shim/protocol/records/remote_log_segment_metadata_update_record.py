"""RemoteLogSegmentMetadataUpdateRecord, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class TopicIdPartitionEntry(Message):
    __slots__ = ("name", "id", "partition")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("id", "uuid", "0+", ZERO_UUID),
        ("partition", "int32", "0+", 0),
    )

    def __init__(self, *, name: str = "", id: bytes = ZERO_UUID, partition: int = 0) -> None:
        self.name = name
        self.id = id
        self.partition = partition
        self.unknown_tags = None


class RemoteLogSegmentIdEntry(Message):
    __slots__ = ("topic_id_partition", "id")
    FIELDS = (
        ("topic_id_partition", "TopicIdPartitionEntry", "0+", ()),
        ("id", "uuid", "0+", ZERO_UUID),
    )

    def __init__(self, *, topic_id_partition: TopicIdPartitionEntry = EMPTY, id: bytes = ZERO_UUID) -> None:
        self.topic_id_partition = TopicIdPartitionEntry() if topic_id_partition is EMPTY else topic_id_partition
        self.id = id
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentIdEntry = EMPTY,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
    ) -> None:
        self.remote_log_segment_id = (
            RemoteLogSegmentIdEntry() if remote_log_segment_id is EMPTY else remote_log_segment_id
        )
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.unknown_tags = None

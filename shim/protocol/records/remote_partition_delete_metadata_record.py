"""RemotePartitionDeleteMetadataRecord, version 0. Written by shim.protocol.transcribe: change nothing here."""

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


class RemotePartitionDeleteMetadataRecord(Message):
    __slots__ = ("topic_id_partition", "broker_id", "event_timestamp_ms", "remote_partition_delete_state")
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("topic_id_partition", "TopicIdPartitionEntry", "0+", ()),
        ("broker_id", "int32", "0+", 0),
        ("event_timestamp_ms", "int64", "0+", 0),
        ("remote_partition_delete_state", "int8", "0+", 0),
    )

    def __init__(
        self,
        *,
        topic_id_partition: TopicIdPartitionEntry = EMPTY,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
    ) -> None:
        self.topic_id_partition = TopicIdPartitionEntry() if topic_id_partition is EMPTY else topic_id_partition
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.remote_partition_delete_state = remote_partition_delete_state
        self.unknown_tags = None

"""RemotePartitionDeleteMetadataRecord, version 0. Written by transcribe.py: change nothing here."""

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

    if TYPE_CHECKING:
        topic_id_partition: TopicIdPartitionEntry = EMPTY
        broker_id: int = 0
        event_timestamp_ms: int = 0
        remote_partition_delete_state: int = 0

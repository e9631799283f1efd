"""ConsumerGroupPartitionMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionMetadata(Message):
    __slots__ = ("partition", "racks")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("racks", "[]string", "0+", ()),
    )

    if TYPE_CHECKING:
        partition: int = 0
        racks: list[str] = EMPTY


class TopicMetadata(Message):
    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("topic_name", "string", "0+", ""),
        ("num_partitions", "int32", "0+", 0),
        ("partition_metadata", "[]PartitionMetadata", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        topic_name: str = ""
        num_partitions: int = 0
        partition_metadata: list[PartitionMetadata] = EMPTY


class ConsumerGroupPartitionMetadataValue(Message):
    __slots__ = ("topics",)
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("topics", "[]TopicMetadata", "0+", ()),)

    if TYPE_CHECKING:
        topics: list[TopicMetadata] = EMPTY

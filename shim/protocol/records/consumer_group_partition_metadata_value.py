"""ConsumerGroupPartitionMetadataValue, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class PartitionMetadata(Message):
    __slots__ = ("partition", "racks")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("racks", "[]string", "0+", ()),
    )

    def __init__(self, *, partition: int = 0, racks: list[str] = EMPTY) -> None:
        self.partition = partition
        self.racks = [] if racks is EMPTY else racks
        self.unknown_tags = None


class TopicMetadata(Message):
    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("topic_name", "string", "0+", ""),
        ("num_partitions", "int32", "0+", 0),
        ("partition_metadata", "[]PartitionMetadata", "0+", ()),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is EMPTY else partition_metadata
        self.unknown_tags = None


class ConsumerGroupPartitionMetadataValue(Message):
    __slots__ = ("topics",)
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("topics", "[]TopicMetadata", "0+", ()),)

    def __init__(self, *, topics: list[TopicMetadata] = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

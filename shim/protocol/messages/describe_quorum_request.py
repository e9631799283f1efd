"""DescribeQuorumRequest, versions 0-2. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class PartitionData(Message):
    __slots__ = ("partition_index",)
    FIELDS = (("partition_index", "int32", "0+", 0),)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index = partition_index
        self.unknown_tags = None


class TopicData(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    def __init__(self, *, topic_name: str = "", partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeQuorumRequest(Message):
    __slots__ = ("topics",)
    API_KEY = 55
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (("topics", "[]TopicData", "0+", ()),)

    def __init__(self, *, topics: list[TopicData] = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

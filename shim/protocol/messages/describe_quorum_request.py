"""DescribeQuorumRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class PartitionData(Message):
    __slots__ = ("partition_index",)
    FIELDS = (("partition_index", "int32", "0+", 0),)

    if TYPE_CHECKING:
        partition_index: int = 0


class TopicData(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partitions: list[PartitionData] = EMPTY


class DescribeQuorumRequest(Message):
    __slots__ = ("topics",)
    API_KEY = 55
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (("topics", "[]TopicData", "0+", ()),)

    if TYPE_CHECKING:
        topics: list[TopicData] = EMPTY

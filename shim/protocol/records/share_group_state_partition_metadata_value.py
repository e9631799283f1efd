"""ShareGroupStatePartitionMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class TopicPartitionsInfo(Message):
    __slots__ = ("topic_id", "topic_name", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        topic_name: str = ""
        partitions: list[int] = EMPTY


class TopicInfo(Message):
    __slots__ = ("topic_id", "topic_name")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("topic_name", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        topic_name: str = ""


class ShareGroupStatePartitionMetadataValue(Message):
    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics")
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("initializing_topics", "[]TopicPartitionsInfo", "0+", ()),
        ("initialized_topics", "[]TopicPartitionsInfo", "0+", ()),
        ("deleting_topics", "[]TopicInfo", "0+", ()),
    )

    if TYPE_CHECKING:
        initializing_topics: list[TopicPartitionsInfo] = EMPTY
        initialized_topics: list[TopicPartitionsInfo] = EMPTY
        deleting_topics: list[TopicInfo] = EMPTY

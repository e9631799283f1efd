"""DescribeTopicPartitionsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TopicRequest(Message):
    __slots__ = ("name",)
    FIELDS = (("name", "string", "0+", ""),)

    if TYPE_CHECKING:
        name: str = ""


class Cursor(Message):
    __slots__ = ("topic_name", "partition_index")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partition_index", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partition_index: int = 0


class DescribeTopicPartitionsRequest(Message):
    __slots__ = ("topics", "response_partition_limit", "cursor")
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("topics", "[]TopicRequest", "0+", ()),
        ("response_partition_limit", "int32", "0+", 2000),
        ("cursor", "Cursor", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        topics: list[TopicRequest] = EMPTY
        response_partition_limit: int = 2000
        cursor: Cursor | None = None

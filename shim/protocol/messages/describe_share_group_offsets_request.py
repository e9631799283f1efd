"""DescribeShareGroupOffsetsRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribeShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partitions: list[int] = EMPTY


class DescribeShareGroupOffsetsRequestGroup(Message):
    __slots__ = ("group_id", "topics")
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]DescribeShareGroupOffsetsRequestTopic", "0+", (), "0+"),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups",)
    API_KEY = 90
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (("groups", "[]DescribeShareGroupOffsetsRequestGroup", "0+", ()),)

    if TYPE_CHECKING:
        groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY

"""DescribeShareGroupOffsetsRequest, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class DescribeShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    def __init__(self, *, topic_name: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeShareGroupOffsetsRequestGroup(Message):
    __slots__ = ("group_id", "topics")
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]DescribeShareGroupOffsetsRequestTopic", "0+", (), "0+"),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups",)
    API_KEY = 90
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (("groups", "[]DescribeShareGroupOffsetsRequestGroup", "0+", ()),)

    def __init__(self, *, groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.unknown_tags = None

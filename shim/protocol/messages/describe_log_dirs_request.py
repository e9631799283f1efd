"""DescribeLogDirsRequest, versions 1-5. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class DescribableLogDirTopic(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2
    FIELDS = (("topics", "[]DescribableLogDirTopic", "0+", (), "0+"),)

    def __init__(self, *, topics: list[DescribableLogDirTopic] | None = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

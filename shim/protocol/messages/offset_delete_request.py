"""OffsetDeleteRequest, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)
    FIELDS = (("partition_index", "int32", "0+", 0),)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index = partition_index
        self.unknown_tags = None


class OffsetDeleteRequestTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]OffsetDeleteRequestPartition", "0+", ()),
    )

    def __init__(self, *, name: str = "", partitions: list[OffsetDeleteRequestPartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class OffsetDeleteRequest(Message):
    __slots__ = ("group_id", "topics")
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]OffsetDeleteRequestTopic", "0+", ()),
    )

    def __init__(self, *, group_id: str = "", topics: list[OffsetDeleteRequestTopic] = EMPTY) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

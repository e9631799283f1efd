"""DeleteRecordsRequest, versions 0-2. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class DeleteRecordsPartition(Message):
    __slots__ = ("partition_index", "offset")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("offset", "int64", "0+", 0),
    )

    def __init__(self, *, partition_index: int = 0, offset: int = 0) -> None:
        self.partition_index = partition_index
        self.offset = offset
        self.unknown_tags = None


class DeleteRecordsTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]DeleteRecordsPartition", "0+", ()),
    )

    def __init__(self, *, name: str = "", partitions: list[DeleteRecordsPartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms")
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("topics", "[]DeleteRecordsTopic", "0+", ()),
        ("timeout_ms", "int32", "0+", 0),
    )

    def __init__(self, *, topics: list[DeleteRecordsTopic] = EMPTY, timeout_ms: int = 0) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.unknown_tags = None

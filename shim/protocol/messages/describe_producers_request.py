"""DescribeProducersRequest, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class TopicRequest(Message):
    __slots__ = ("name", "partition_indexes")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partition_indexes", "[]int32", "0+", ()),
    )

    def __init__(self, *, name: str = "", partition_indexes: list[int] = EMPTY) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags = None


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("topics", "[]TopicRequest", "0+", ()),)

    def __init__(self, *, topics: list[TopicRequest] = EMPTY) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

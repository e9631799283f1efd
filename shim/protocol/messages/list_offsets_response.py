"""ListOffsetsResponse, versions 1-11. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class ListOffsetsPartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("timestamp", "int64", "1+", -1),
        ("offset", "int64", "1+", -1),
        ("leader_epoch", "int32", "4+", -1),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class ListOffsetsTopicResponse(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]ListOffsetsPartitionResponse", "0+", ()),
    )

    def __init__(self, *, name: str = "", partitions: list[ListOffsetsPartitionResponse] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ListOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_FROM = 6
    FIELDS = (
        ("throttle_time_ms", "int32", "2+", 0, "", True),
        ("topics", "[]ListOffsetsTopicResponse", "0+", ()),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[ListOffsetsTopicResponse] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

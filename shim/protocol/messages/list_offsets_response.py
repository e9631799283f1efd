"""ListOffsetsResponse, versions 1-11. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ListOffsetsPartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("timestamp", "int64", "1+", -1),
        ("offset", "int64", "1+", -1),
        ("leader_epoch", "int32", "4+", -1),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
        timestamp: int = -1
        offset: int = -1
        leader_epoch: int = -1


class ListOffsetsTopicResponse(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]ListOffsetsPartitionResponse", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[ListOffsetsPartitionResponse] = EMPTY


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

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[ListOffsetsTopicResponse] = EMPTY

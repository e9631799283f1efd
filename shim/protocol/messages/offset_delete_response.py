"""OffsetDeleteResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class OffsetDeleteResponsePartition(Message):
    __slots__ = ("partition_index", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0


class OffsetDeleteResponseTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]OffsetDeleteResponsePartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[OffsetDeleteResponsePartition] = EMPTY


class OffsetDeleteResponse(Message):
    __slots__ = ("error_code", "throttle_time_ms", "topics")
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("throttle_time_ms", "int32", "0+", 0, "", True),
        ("topics", "[]OffsetDeleteResponseTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        throttle_time_ms: int = 0
        topics: list[OffsetDeleteResponseTopic] = EMPTY

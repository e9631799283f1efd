"""OffsetForLeaderEpochResponse, versions 2-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class EpochEndOffset(Message):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("partition", "int32", "0+", 0),
        ("leader_epoch", "int32", "1+", -1, "", True),
        ("end_offset", "int64", "0+", -1),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        partition: int = 0
        leader_epoch: int = -1
        end_offset: int = -1


class OffsetForLeaderTopicResult(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]EpochEndOffset", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[EpochEndOffset] = EMPTY


class OffsetForLeaderEpochResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("throttle_time_ms", "int32", "2+", 0, "", True),
        ("topics", "[]OffsetForLeaderTopicResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[OffsetForLeaderTopicResult] = EMPTY

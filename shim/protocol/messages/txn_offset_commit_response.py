"""TxnOffsetCommitResponse, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TxnOffsetCommitResponsePartition(Message):
    __slots__ = ("partition_index", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0


class TxnOffsetCommitResponseTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]TxnOffsetCommitResponsePartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY


class TxnOffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 28
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("topics", "[]TxnOffsetCommitResponseTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY

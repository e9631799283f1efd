"""DeleteRecordsResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DeleteRecordsPartitionResult(Message):
    __slots__ = ("partition_index", "low_watermark", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("low_watermark", "int64", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        low_watermark: int = 0
        error_code: int = 0


class DeleteRecordsTopicResult(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]DeleteRecordsPartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[DeleteRecordsPartitionResult] = EMPTY


class DeleteRecordsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("topics", "[]DeleteRecordsTopicResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[DeleteRecordsTopicResult] = EMPTY

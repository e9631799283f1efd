"""OffsetCommitResponse, versions 2-10. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class OffsetCommitResponsePartition(Message):
    __slots__ = ("partition_index", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0


class OffsetCommitResponseTopic(Message):
    __slots__ = ("name", "topic_id", "partitions")
    FIELDS = (
        ("name", "string", "0-9", "", "", True),
        ("topic_id", "uuid", "10+", ZERO_UUID, "", True),
        ("partitions", "[]OffsetCommitResponsePartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[OffsetCommitResponsePartition] = EMPTY


class OffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_FROM = 8
    FIELDS = (
        ("throttle_time_ms", "int32", "3+", 0, "", True),
        ("topics", "[]OffsetCommitResponseTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[OffsetCommitResponseTopic] = EMPTY

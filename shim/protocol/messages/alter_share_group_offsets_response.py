"""AlterShareGroupOffsetsResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class AlterShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("partition_index", "error_code", "error_message")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None


class AlterShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("topic_name", "topic_id", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]AlterShareGroupOffsetsResponsePartition", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[AlterShareGroupOffsetsResponsePartition] = EMPTY


class AlterShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    API_KEY = 91
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("responses", "[]AlterShareGroupOffsetsResponseTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = None
        responses: list[AlterShareGroupOffsetsResponseTopic] = EMPTY

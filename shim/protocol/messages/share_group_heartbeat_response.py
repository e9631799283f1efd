"""ShareGroupHeartbeatResponse, version 1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[int] = EMPTY


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIELDS = (("topic_partitions", "[]TopicPartitions", "0+", ()),)

    if TYPE_CHECKING:
        topic_partitions: list[TopicPartitions] = EMPTY


class ShareGroupHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    API_KEY = 76
    MIN_VERSION = 1
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("member_id", "string", "0+", None, "0+"),
        ("member_epoch", "int32", "0+", 0),
        ("heartbeat_interval_ms", "int32", "0+", 0),
        ("assignment", "Assignment", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = None
        member_id: str | None = None
        member_epoch: int = 0
        heartbeat_interval_ms: int = 0
        assignment: Assignment | None = None

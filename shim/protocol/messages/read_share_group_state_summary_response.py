"""ReadShareGroupStateSummaryResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionResult(Message):
    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
    )
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("state_epoch", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
        ("start_offset", "int64", "0+", 0),
        ("delivery_complete_count", "int32", "1+", -1, "", True),
    )

    if TYPE_CHECKING:
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None
        state_epoch: int = 0
        leader_epoch: int = 0
        start_offset: int = 0
        delivery_complete_count: int = -1


class ReadStateSummaryResult(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionResult] = EMPTY


class ReadShareGroupStateSummaryResponse(Message):
    __slots__ = ("results",)
    API_KEY = 87
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (("results", "[]ReadStateSummaryResult", "0+", ()),)

    if TYPE_CHECKING:
        results: list[ReadStateSummaryResult] = EMPTY

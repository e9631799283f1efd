"""ReadShareGroupStateResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class StateBatch(Message):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    FIELDS = (
        ("first_offset", "int64", "0+", 0),
        ("last_offset", "int64", "0+", 0),
        ("delivery_state", "int8", "0+", 0),
        ("delivery_count", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        first_offset: int = 0
        last_offset: int = 0
        delivery_state: int = 0
        delivery_count: int = 0


class PartitionResult(Message):
    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "start_offset", "state_batches")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("state_epoch", "int32", "0+", 0),
        ("start_offset", "int64", "0+", 0),
        ("state_batches", "[]StateBatch", "0+", ()),
    )

    if TYPE_CHECKING:
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None
        state_epoch: int = 0
        start_offset: int = 0
        state_batches: list[StateBatch] = EMPTY


class ReadStateResult(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionResult] = EMPTY


class ReadShareGroupStateResponse(Message):
    __slots__ = ("results",)
    API_KEY = 84
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("results", "[]ReadStateResult", "0+", ()),)

    if TYPE_CHECKING:
        results: list[ReadStateResult] = EMPTY

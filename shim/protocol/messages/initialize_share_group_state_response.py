"""InitializeShareGroupStateResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionResult(Message):
    __slots__ = ("partition", "error_code", "error_message")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        partition: int = 0
        error_code: int = 0
        error_message: str | None = None


class InitializeStateResult(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionResult] = EMPTY


class InitializeShareGroupStateResponse(Message):
    __slots__ = ("results",)
    API_KEY = 83
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("results", "[]InitializeStateResult", "0+", ()),)

    if TYPE_CHECKING:
        results: list[InitializeStateResult] = EMPTY

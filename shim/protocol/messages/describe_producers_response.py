"""DescribeProducersResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ProducerState(Message):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )
    FIELDS = (
        ("producer_id", "int64", "0+", 0),
        ("producer_epoch", "int32", "0+", 0),
        ("last_sequence", "int32", "0+", -1),
        ("last_timestamp", "int64", "0+", -1),
        ("coordinator_epoch", "int32", "0+", 0),
        ("current_txn_start_offset", "int64", "0+", -1),
    )

    if TYPE_CHECKING:
        producer_id: int = 0
        producer_epoch: int = 0
        last_sequence: int = -1
        last_timestamp: int = -1
        coordinator_epoch: int = 0
        current_txn_start_offset: int = -1


class PartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("active_producers", "[]ProducerState", "0+", ()),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        active_producers: list[ProducerState] = EMPTY


class TopicResponse(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]PartitionResponse", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[PartitionResponse] = EMPTY


class DescribeProducersResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("topics", "[]TopicResponse", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[TopicResponse] = EMPTY

"""DescribeTransactionsResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TopicData(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[int] = EMPTY


class TransactionState(Message):
    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("transactional_id", "string", "0+", ""),
        ("transaction_state", "string", "0+", ""),
        ("transaction_timeout_ms", "int32", "0+", 0),
        ("transaction_start_time_ms", "int64", "0+", 0),
        ("producer_id", "int64", "0+", 0),
        ("producer_epoch", "int16", "0+", 0),
        ("topics", "[]TopicData", "0+", ()),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        transactional_id: str = ""
        transaction_state: str = ""
        transaction_timeout_ms: int = 0
        transaction_start_time_ms: int = 0
        producer_id: int = 0
        producer_epoch: int = 0
        topics: list[TopicData] = EMPTY


class DescribeTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "transaction_states")
    API_KEY = 65
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("transaction_states", "[]TransactionState", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        transaction_states: list[TransactionState] = EMPTY

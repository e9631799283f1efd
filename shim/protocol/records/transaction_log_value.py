"""TransactionLogValue, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class PartitionsSchema(Message):
    __slots__ = ("topic", "partition_ids")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partition_ids", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partition_ids: list[int] = EMPTY


class TransactionLogValue(Message):
    __slots__ = (
        "producer_id",
        "previous_producer_id",
        "next_producer_id",
        "producer_epoch",
        "next_producer_epoch",
        "transaction_timeout_ms",
        "transaction_status",
        "transaction_partitions",
        "transaction_last_update_timestamp_ms",
        "transaction_start_timestamp_ms",
        "client_transaction_version",
    )
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("producer_id", "int64", "0+", 0),
        ("previous_producer_id", "int64", "1+", -1, "", False, 0, "1+"),
        ("next_producer_id", "int64", "1+", -1, "", False, 1, "1+"),
        ("producer_epoch", "int16", "0+", 0),
        ("next_producer_epoch", "int16", "1+", -1, "", False, 3, "1+"),
        ("transaction_timeout_ms", "int32", "0+", 0),
        ("transaction_status", "int8", "0+", 0),
        ("transaction_partitions", "[]PartitionsSchema", "0+", (), "0+"),
        ("transaction_last_update_timestamp_ms", "int64", "0+", 0),
        ("transaction_start_timestamp_ms", "int64", "0+", 0),
        ("client_transaction_version", "int16", "1+", 0, "", False, 2, "1+"),
    )

    if TYPE_CHECKING:
        producer_id: int = 0
        previous_producer_id: int = -1
        next_producer_id: int = -1
        producer_epoch: int = 0
        next_producer_epoch: int = -1
        transaction_timeout_ms: int = 0
        transaction_status: int = 0
        transaction_partitions: list[PartitionsSchema] | None = EMPTY
        transaction_last_update_timestamp_ms: int = 0
        transaction_start_timestamp_ms: int = 0
        client_transaction_version: int = 0

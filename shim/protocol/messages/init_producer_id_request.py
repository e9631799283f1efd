"""InitProducerIdRequest, versions 0-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class InitProducerIdRequest(Message):
    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("transactional_id", "string", "0+", "", "0+"),
        ("transaction_timeout_ms", "int32", "0+", 0),
        ("producer_id", "int64", "3+", -1),
        ("producer_epoch", "int16", "3+", -1),
        ("enable2_pc", "bool", "6+", False),
        ("keep_prepared_txn", "bool", "6+", False),
    )

    if TYPE_CHECKING:
        transactional_id: str | None = ""
        transaction_timeout_ms: int = 0
        producer_id: int = -1
        producer_epoch: int = -1
        enable2_pc: bool = False
        keep_prepared_txn: bool = False

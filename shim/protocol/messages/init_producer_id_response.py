"""InitProducerIdResponse, versions 0-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class InitProducerIdResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0, "", True),
        ("error_code", "int16", "0+", 0),
        ("producer_id", "int64", "0+", -1),
        ("producer_epoch", "int16", "0+", 0),
        ("ongoing_txn_producer_id", "int64", "6+", -1),
        ("ongoing_txn_producer_epoch", "int16", "6+", -1),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        producer_id: int = -1
        producer_epoch: int = 0
        ongoing_txn_producer_id: int = -1
        ongoing_txn_producer_epoch: int = -1

"""ProducerIdsRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ProducerIdsRecord(Message):
    __slots__ = ("broker_id", "broker_epoch", "next_producer_id")
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("broker_epoch", "int64", "0+", -1),
        ("next_producer_id", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        broker_epoch: int = -1
        next_producer_id: int = 0

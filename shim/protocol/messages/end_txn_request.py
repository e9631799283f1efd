"""EndTxnRequest, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class EndTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")
    API_KEY = 26
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("transactional_id", "string", "0+", ""),
        ("producer_id", "int64", "0+", 0),
        ("producer_epoch", "int16", "0+", 0),
        ("committed", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        transactional_id: str = ""
        producer_id: int = 0
        producer_epoch: int = 0
        committed: bool = False

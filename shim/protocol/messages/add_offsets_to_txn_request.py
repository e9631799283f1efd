"""AddOffsetsToTxnRequest, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class AddOffsetsToTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    API_KEY = 25
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("transactional_id", "string", "0+", ""),
        ("producer_id", "int64", "0+", 0),
        ("producer_epoch", "int16", "0+", 0),
        ("group_id", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        transactional_id: str = ""
        producer_id: int = 0
        producer_epoch: int = 0
        group_id: str = ""

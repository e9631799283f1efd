"""FenceBrokerRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class FenceBrokerRecord(Message):
    __slots__ = ("id", "epoch")
    API_KEY = 7
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("id", "int32", "0+", 0),
        ("epoch", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        id: int = 0
        epoch: int = 0

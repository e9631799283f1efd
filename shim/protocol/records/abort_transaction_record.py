"""AbortTransactionRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class AbortTransactionRecord(Message):
    __slots__ = ("reason",)
    API_KEY = 25
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("reason", "string", "0+", None, "0+", False, 0, "0+"),)

    if TYPE_CHECKING:
        reason: str | None = None

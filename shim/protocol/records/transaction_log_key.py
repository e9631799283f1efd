"""TransactionLogKey, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class TransactionLogKey(Message):
    __slots__ = ("transactional_id",)
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("transactional_id", "string", "0", ""),)

    if TYPE_CHECKING:
        transactional_id: str = ""

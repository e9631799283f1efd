"""TransactionLogKey, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class TransactionLogKey(Message):
    __slots__ = ("transactional_id",)
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("transactional_id", "string", "0", ""),)

    def __init__(self, *, transactional_id: str = "") -> None:
        self.transactional_id = transactional_id
        self.unknown_tags = None

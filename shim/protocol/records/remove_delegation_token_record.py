"""RemoveDelegationTokenRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class RemoveDelegationTokenRecord(Message):
    __slots__ = ("token_id",)
    API_KEY = 26
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("token_id", "string", "0+", ""),)

    if TYPE_CHECKING:
        token_id: str = ""

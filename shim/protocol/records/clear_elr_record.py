"""ClearElrRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ClearElrRecord(Message):
    __slots__ = ("topic_name",)
    API_KEY = 28
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("topic_name", "string", "0+", ""),)

    if TYPE_CHECKING:
        topic_name: str = ""

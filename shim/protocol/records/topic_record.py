"""TopicRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class TopicRecord(Message):
    __slots__ = ("name", "topic_id")
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("name", "string", "0+", ""),
        ("topic_id", "uuid", "0+", ZERO_UUID),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID

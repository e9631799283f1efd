"""RemoveTopicRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class RemoveTopicRecord(Message):
    __slots__ = ("topic_id",)
    API_KEY = 9
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("topic_id", "uuid", "0+", ZERO_UUID),)

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID

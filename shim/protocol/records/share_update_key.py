"""ShareUpdateKey, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class ShareUpdateKey(Message):
    __slots__ = ("group_id", "topic_id", "partition")
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("group_id", "string", "0", ""),
        ("topic_id", "uuid", "0", ZERO_UUID),
        ("partition", "int32", "0", 0),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topic_id: bytes = ZERO_UUID
        partition: int = 0

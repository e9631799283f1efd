"""OffsetCommitKey, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class OffsetCommitKey(Message):
    __slots__ = ("group", "topic", "partition")
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("group", "string", "0", ""),
        ("topic", "string", "0", ""),
        ("partition", "int32", "0", 0),
    )

    if TYPE_CHECKING:
        group: str = ""
        topic: str = ""
        partition: int = 0

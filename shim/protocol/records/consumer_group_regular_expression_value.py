"""ConsumerGroupRegularExpressionValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ConsumerGroupRegularExpressionValue(Message):
    __slots__ = ("topics", "version", "timestamp")
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("topics", "[]string", "0+", ()),
        ("version", "int64", "0+", 0),
        ("timestamp", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        topics: list[str] = EMPTY
        version: int = 0
        timestamp: int = 0

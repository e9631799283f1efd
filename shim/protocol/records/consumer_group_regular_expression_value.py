"""ConsumerGroupRegularExpressionValue, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


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

    def __init__(self, *, topics: list[str] = EMPTY, version: int = 0, timestamp: int = 0) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.version = version
        self.timestamp = timestamp
        self.unknown_tags = None

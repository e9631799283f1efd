"""LegacyOffsetCommitValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class LegacyOffsetCommitValue(Message):
    __slots__ = ("offset", "metadata", "commit_timestamp")
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("offset", "int64", "0", 0),
        ("metadata", "string", "0", ""),
        ("commit_timestamp", "int64", "0", 0),
    )

    if TYPE_CHECKING:
        offset: int = 0
        metadata: str = ""
        commit_timestamp: int = 0

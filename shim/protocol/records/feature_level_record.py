"""FeatureLevelRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class FeatureLevelRecord(Message):
    __slots__ = ("name", "feature_level")
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("name", "string", "0+", ""),
        ("feature_level", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        feature_level: int = 0

"""FeatureLevelRecord, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


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

    def __init__(self, *, name: str = "", feature_level: int = 0) -> None:
        self.name = name
        self.feature_level = feature_level
        self.unknown_tags = None

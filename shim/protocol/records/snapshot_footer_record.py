"""SnapshotFooterRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class SnapshotFooterRecord(Message):
    __slots__ = ("version",)
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("version", "int16", "0+", 0),)

    if TYPE_CHECKING:
        version: int = 0

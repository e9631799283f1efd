"""ControlRecordTypeSchema, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ControlRecordTypeSchema(Message):
    __slots__ = ("type",)
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("type", "int16", "0+", 0),)

    if TYPE_CHECKING:
        type: int = 0

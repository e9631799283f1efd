"""ControlRecordTypeSchema, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class ControlRecordTypeSchema(Message):
    __slots__ = ("type",)
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("type", "int16", "0+", 0),)

    def __init__(self, *, type: int = 0) -> None:
        self.type = type
        self.unknown_tags = None

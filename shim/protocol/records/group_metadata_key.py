"""GroupMetadataKey, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class GroupMetadataKey(Message):
    __slots__ = ("group",)
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("group", "string", "0", ""),)

    def __init__(self, *, group: str = "") -> None:
        self.group = group
        self.unknown_tags = None

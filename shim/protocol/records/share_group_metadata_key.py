"""ShareGroupMetadataKey, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class ShareGroupMetadataKey(Message):
    __slots__ = ("group_id",)
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("group_id", "string", "0", ""),)

    def __init__(self, *, group_id: str = "") -> None:
        self.group_id = group_id
        self.unknown_tags = None

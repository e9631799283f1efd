"""GroupMetadataKey, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class GroupMetadataKey(Message):
    __slots__ = ("group",)
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("group", "string", "0", ""),)

    if TYPE_CHECKING:
        group: str = ""

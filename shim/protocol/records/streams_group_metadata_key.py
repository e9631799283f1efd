"""StreamsGroupMetadataKey, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class StreamsGroupMetadataKey(Message):
    __slots__ = ("group_id",)
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("group_id", "string", "0", ""),)

    if TYPE_CHECKING:
        group_id: str = ""

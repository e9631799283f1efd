"""RemoveAccessControlEntryRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class RemoveAccessControlEntryRecord(Message):
    __slots__ = ("id",)
    API_KEY = 19
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("id", "uuid", "0+", ZERO_UUID),)

    if TYPE_CHECKING:
        id: bytes = ZERO_UUID

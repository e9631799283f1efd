"""RemoveUserScramCredentialRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class RemoveUserScramCredentialRecord(Message):
    __slots__ = ("name", "mechanism")
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("name", "string", "0+", ""),
        ("mechanism", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        mechanism: int = 0

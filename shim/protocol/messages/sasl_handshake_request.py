"""SaslHandshakeRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism",)
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FIELDS = (("mechanism", "string", "0+", ""),)

    if TYPE_CHECKING:
        mechanism: str = ""

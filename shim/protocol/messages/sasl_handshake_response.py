"""SaslHandshakeResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class SaslHandshakeResponse(Message):
    __slots__ = ("error_code", "mechanisms")
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("mechanisms", "[]string", "0+", ()),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        mechanisms: list[str] = EMPTY

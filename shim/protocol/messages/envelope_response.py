"""EnvelopeResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class EnvelopeResponse(Message):
    __slots__ = ("response_data", "error_code")
    API_KEY = 58
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("response_data", "bytes", "0+", None, "0+"),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        response_data: bytes | None = None
        error_code: int = 0

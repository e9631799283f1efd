"""SaslAuthenticateResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class SaslAuthenticateResponse(Message):
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("auth_bytes", "bytes", "0+", b""),
        ("session_lifetime_ms", "int64", "1+", 0, "", True),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""
        auth_bytes: bytes = b""
        session_lifetime_ms: int = 0

"""SaslAuthenticateRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes",)
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (("auth_bytes", "bytes", "0+", b""),)

    if TYPE_CHECKING:
        auth_bytes: bytes = b""

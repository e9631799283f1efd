"""ExpireDelegationTokenRequest, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ExpireDelegationTokenRequest(Message):
    __slots__ = ("hmac", "expiry_time_period_ms")
    API_KEY = 40
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("hmac", "bytes", "0+", b""),
        ("expiry_time_period_ms", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        hmac: bytes = b""
        expiry_time_period_ms: int = 0

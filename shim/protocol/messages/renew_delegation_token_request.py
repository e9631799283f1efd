"""RenewDelegationTokenRequest, versions 1-2. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class RenewDelegationTokenRequest(Message):
    __slots__ = ("hmac", "renew_period_ms")
    API_KEY = 39
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("hmac", "bytes", "0+", b""),
        ("renew_period_ms", "int64", "0+", 0),
    )

    def __init__(self, *, hmac: bytes = b"", renew_period_ms: int = 0) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
        self.unknown_tags = None

"""ExpireDelegationTokenResponse, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ExpireDelegationTokenResponse(Message):
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    API_KEY = 40
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("expiry_timestamp_ms", "int64", "0+", 0),
        ("throttle_time_ms", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        expiry_timestamp_ms: int = 0
        throttle_time_ms: int = 0

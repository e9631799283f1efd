"""AddOffsetsToTxnResponse, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class AddOffsetsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")
    API_KEY = 25
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0

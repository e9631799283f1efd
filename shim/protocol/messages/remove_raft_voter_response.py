"""RemoveRaftVoterResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class RemoveRaftVoterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 81
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+", True),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = ""

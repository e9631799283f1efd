"""SyncGroupResponse, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class SyncGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("error_code", "int16", "0+", 0),
        ("protocol_type", "string", "5+", None, "5+", True),
        ("protocol_name", "string", "5+", None, "5+", True),
        ("assignment", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        protocol_type: str | None = None
        protocol_name: str | None = None
        assignment: bytes = b""

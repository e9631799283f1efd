"""FindCoordinatorResponse, versions 0-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class Coordinator(Message):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")
    FIELDS = (
        ("key", "string", "4+", ""),
        ("node_id", "int32", "4+", 0),
        ("host", "string", "4+", ""),
        ("port", "int32", "4+", 0),
        ("error_code", "int16", "4+", 0),
        ("error_message", "string", "4+", "", "4+", True),
    )

    if TYPE_CHECKING:
        key: str = ""
        node_id: int = 0
        host: str = ""
        port: int = 0
        error_code: int = 0
        error_message: str | None = ""


class FindCoordinatorResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators")
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("error_code", "int16", "0-3", 0),
        ("error_message", "string", "1-3", "", "1-3", True),
        ("node_id", "int32", "0-3", 0),
        ("host", "string", "0-3", ""),
        ("port", "int32", "0-3", 0),
        ("coordinators", "[]Coordinator", "4+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = ""
        node_id: int = 0
        host: str = ""
        port: int = 0
        coordinators: list[Coordinator] = EMPTY

"""AccessControlEntryRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class AccessControlEntryRecord(Message):
    __slots__ = (
        "id",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("id", "uuid", "0+", ZERO_UUID),
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("pattern_type", "int8", "0+", 0),
        ("principal", "string", "0+", ""),
        ("host", "string", "0+", ""),
        ("operation", "int8", "0+", 0),
        ("permission_type", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        id: bytes = ZERO_UUID
        resource_type: int = 0
        resource_name: str = ""
        pattern_type: int = 0
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0

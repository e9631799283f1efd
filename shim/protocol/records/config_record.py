"""ConfigRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ConfigRecord(Message):
    __slots__ = ("resource_type", "resource_name", "name", "value")
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("name", "string", "0+", ""),
        ("value", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        resource_type: int = 0
        resource_name: str = ""
        name: str = ""
        value: str | None = ""

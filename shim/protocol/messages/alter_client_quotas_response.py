"""AlterClientQuotasResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class EntityData(Message):
    __slots__ = ("entity_type", "entity_name")
    FIELDS = (
        ("entity_type", "string", "0+", ""),
        ("entity_name", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        entity_type: str = ""
        entity_name: str | None = ""


class EntryData(Message):
    __slots__ = ("error_code", "error_message", "entity")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("entity", "[]EntityData", "0+", ()),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""
        entity: list[EntityData] = EMPTY


class AlterClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "entries")
    API_KEY = 49
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("entries", "[]EntryData", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        entries: list[EntryData] = EMPTY

"""DescribeClientQuotasResponse, versions 0-1. Written by transcribe.py: change nothing here."""

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


class ValueData(Message):
    __slots__ = ("key", "value")
    FIELDS = (
        ("key", "string", "0+", ""),
        ("value", "float64", "0+", 0.0),
    )

    if TYPE_CHECKING:
        key: str = ""
        value: float = 0.0


class EntryData(Message):
    __slots__ = ("entity", "values")
    FIELDS = (
        ("entity", "[]EntityData", "0+", ()),
        ("values", "[]ValueData", "0+", ()),
    )

    if TYPE_CHECKING:
        entity: list[EntityData] = EMPTY
        values: list[ValueData] = EMPTY


class DescribeClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")
    API_KEY = 48
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("entries", "[]EntryData", "0+", (), "0+"),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = ""
        entries: list[EntryData] | None = EMPTY

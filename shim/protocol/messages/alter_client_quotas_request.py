"""AlterClientQuotasRequest, versions 0-1. Written by transcribe.py: change nothing here."""

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


class OpData(Message):
    __slots__ = ("key", "value", "remove")
    FIELDS = (
        ("key", "string", "0+", ""),
        ("value", "float64", "0+", 0.0),
        ("remove", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        key: str = ""
        value: float = 0.0
        remove: bool = False


class EntryData(Message):
    __slots__ = ("entity", "ops")
    FIELDS = (
        ("entity", "[]EntityData", "0+", ()),
        ("ops", "[]OpData", "0+", ()),
    )

    if TYPE_CHECKING:
        entity: list[EntityData] = EMPTY
        ops: list[OpData] = EMPTY


class AlterClientQuotasRequest(Message):
    __slots__ = ("entries", "validate_only")
    API_KEY = 49
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("entries", "[]EntryData", "0+", ()),
        ("validate_only", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        entries: list[EntryData] = EMPTY
        validate_only: bool = False

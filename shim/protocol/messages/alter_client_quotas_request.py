"""AlterClientQuotasRequest, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class EntityData(Message):
    __slots__ = ("entity_type", "entity_name")
    FIELDS = (
        ("entity_type", "string", "0+", ""),
        ("entity_name", "string", "0+", "", "0+"),
    )

    def __init__(self, *, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name
        self.unknown_tags = None


class OpData(Message):
    __slots__ = ("key", "value", "remove")
    FIELDS = (
        ("key", "string", "0+", ""),
        ("value", "float64", "0+", 0.0),
        ("remove", "bool", "0+", False),
    )

    def __init__(self, *, key: str = "", value: float = 0.0, remove: bool = False) -> None:
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tags = None


class EntryData(Message):
    __slots__ = ("entity", "ops")
    FIELDS = (
        ("entity", "[]EntityData", "0+", ()),
        ("ops", "[]OpData", "0+", ()),
    )

    def __init__(self, *, entity: list[EntityData] = EMPTY, ops: list[OpData] = EMPTY) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.ops = [] if ops is EMPTY else ops
        self.unknown_tags = None


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

    def __init__(self, *, entries: list[EntryData] = EMPTY, validate_only: bool = False) -> None:
        self.entries = [] if entries is EMPTY else entries
        self.validate_only = validate_only
        self.unknown_tags = None

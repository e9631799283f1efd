"""ClientQuotaRecord, version 0. Written by transcribe.py: change nothing here."""

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


class ClientQuotaRecord(Message):
    __slots__ = ("entity", "key", "value", "remove")
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("entity", "[]EntityData", "0+", ()),
        ("key", "string", "0+", ""),
        ("value", "float64", "0+", 0.0),
        ("remove", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        entity: list[EntityData] = EMPTY
        key: str = ""
        value: float = 0.0
        remove: bool = False

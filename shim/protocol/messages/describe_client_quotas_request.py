"""DescribeClientQuotasRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ComponentData(Message):
    __slots__ = ("entity_type", "match_type", "match")
    FIELDS = (
        ("entity_type", "string", "0+", ""),
        ("match_type", "int8", "0+", 0),
        ("match", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        entity_type: str = ""
        match_type: int = 0
        match: str | None = ""


class DescribeClientQuotasRequest(Message):
    __slots__ = ("components", "strict")
    API_KEY = 48
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("components", "[]ComponentData", "0+", ()),
        ("strict", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        components: list[ComponentData] = EMPTY
        strict: bool = False

"""ListConfigResourcesRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types",)
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (("resource_types", "[]int8", "1+", ()),)

    if TYPE_CHECKING:
        resource_types: list[int] = EMPTY

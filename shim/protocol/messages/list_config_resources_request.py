"""ListConfigResourcesRequest, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types",)
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (("resource_types", "[]int8", "1+", ()),)

    def __init__(self, *, resource_types: list[int] = EMPTY) -> None:
        self.resource_types = [] if resource_types is EMPTY else resource_types
        self.unknown_tags = None

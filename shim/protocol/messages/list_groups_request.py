"""ListGroupsRequest, versions 0-5. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class ListGroupsRequest(Message):
    __slots__ = ("states_filter", "types_filter")
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("states_filter", "[]string", "4+", ()),
        ("types_filter", "[]string", "5+", ()),
    )

    def __init__(self, *, states_filter: list[str] = EMPTY, types_filter: list[str] = EMPTY) -> None:
        self.states_filter = [] if states_filter is EMPTY else states_filter
        self.types_filter = [] if types_filter is EMPTY else types_filter
        self.unknown_tags = None

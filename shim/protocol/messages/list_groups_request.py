"""ListGroupsRequest, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


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

    if TYPE_CHECKING:
        states_filter: list[str] = EMPTY
        types_filter: list[str] = EMPTY

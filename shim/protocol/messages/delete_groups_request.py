"""DeleteGroupsRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names",)
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (("groups_names", "[]string", "0+", ()),)

    if TYPE_CHECKING:
        groups_names: list[str] = EMPTY

"""DescribeGroupsRequest, versions 0-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribeGroupsRequest(Message):
    __slots__ = ("groups", "include_authorized_operations")
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("groups", "[]string", "0+", ()),
        ("include_authorized_operations", "bool", "3+", False),
    )

    if TYPE_CHECKING:
        groups: list[str] = EMPTY
        include_authorized_operations: bool = False

"""ConsumerGroupDescribeRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ConsumerGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations")
    API_KEY = 69
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_ids", "[]string", "0+", ()),
        ("include_authorized_operations", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        group_ids: list[str] = EMPTY
        include_authorized_operations: bool = False

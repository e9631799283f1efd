"""ShareGroupDescribeRequest, version 1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ShareGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations")
    API_KEY = 77
    MIN_VERSION = 1
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_ids", "[]string", "0+", ()),
        ("include_authorized_operations", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        group_ids: list[str] = EMPTY
        include_authorized_operations: bool = False

"""ConsumerGroupRegularExpressionKey, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class ConsumerGroupRegularExpressionKey(Message):
    __slots__ = ("group_id", "regular_expression")
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("group_id", "string", "0", ""),
        ("regular_expression", "string", "0", ""),
    )

    def __init__(self, *, group_id: str = "", regular_expression: str = "") -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression
        self.unknown_tags = None

"""ResponseHeader, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class ResponseHeader(Message):
    __slots__ = ("correlation_id",)
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (("correlation_id", "int32", "0+", 0),)

    def __init__(self, *, correlation_id: int = 0) -> None:
        self.correlation_id = correlation_id
        self.unknown_tags = None

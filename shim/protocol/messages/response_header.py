"""ResponseHeader, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ResponseHeader(Message):
    __slots__ = ("correlation_id",)
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (("correlation_id", "int32", "0+", 0),)

    if TYPE_CHECKING:
        correlation_id: int = 0

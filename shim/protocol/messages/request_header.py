"""RequestHeader, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class RequestHeader(Message):
    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id")
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("request_api_key", "int16", "0+", 0),
        ("request_api_version", "int16", "0+", 0),
        ("correlation_id", "int32", "0+", 0),
        ("client_id", "string16", "1+", "", "1+"),
    )

    if TYPE_CHECKING:
        request_api_key: int = 0
        request_api_version: int = 0
        correlation_id: int = 0
        client_id: str | None = ""

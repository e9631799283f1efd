"""EnvelopeRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class EnvelopeRequest(Message):
    __slots__ = ("request_data", "request_principal", "client_host_address")
    API_KEY = 58
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("request_data", "bytes", "0+", b""),
        ("request_principal", "bytes", "0+", b"", "0+"),
        ("client_host_address", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        request_data: bytes = b""
        request_principal: bytes | None = b""
        client_host_address: bytes = b""

"""PushTelemetryRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class PushTelemetryRequest(Message):
    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")
    API_KEY = 72
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("client_instance_id", "uuid", "0+", ZERO_UUID),
        ("subscription_id", "int32", "0+", 0),
        ("terminating", "bool", "0+", False),
        ("compression_type", "int8", "0+", 0),
        ("metrics", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        client_instance_id: bytes = ZERO_UUID
        subscription_id: int = 0
        terminating: bool = False
        compression_type: int = 0
        metrics: bytes = b""

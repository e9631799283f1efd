"""GetTelemetrySubscriptionsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class GetTelemetrySubscriptionsRequest(Message):
    __slots__ = ("client_instance_id",)
    API_KEY = 71
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("client_instance_id", "uuid", "0+", ZERO_UUID),)

    if TYPE_CHECKING:
        client_instance_id: bytes = ZERO_UUID

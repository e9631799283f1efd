"""UnregisterBrokerRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class UnregisterBrokerRequest(Message):
    __slots__ = ("broker_id",)
    API_KEY = 64
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("broker_id", "int32", "0+", 0),)

    if TYPE_CHECKING:
        broker_id: int = 0

"""EndTxnMarker, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class EndTxnMarker(Message):
    __slots__ = ("coordinator_epoch",)
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("coordinator_epoch", "int32", "0+", 0),)

    if TYPE_CHECKING:
        coordinator_epoch: int = 0

"""EndTxnMarker, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class EndTxnMarker(Message):
    __slots__ = ("coordinator_epoch",)
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (("coordinator_epoch", "int32", "0+", 0),)

    def __init__(self, *, coordinator_epoch: int = 0) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.unknown_tags = None

"""ProducerSnapshot, version 1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ProducerEntry(Message):
    __slots__ = (
        "producer_id",
        "epoch",
        "last_sequence",
        "last_offset",
        "offset_delta",
        "timestamp",
        "coordinator_epoch",
        "current_txn_first_offset",
    )
    FIELDS = (
        ("producer_id", "int64", "1", 0),
        ("epoch", "int16", "1", 0),
        ("last_sequence", "int32", "1", 0),
        ("last_offset", "int64", "1", 0),
        ("offset_delta", "int32", "1", 0),
        ("timestamp", "int64", "1", 0),
        ("coordinator_epoch", "int32", "1", 0),
        ("current_txn_first_offset", "int64", "1", 0),
    )

    if TYPE_CHECKING:
        producer_id: int = 0
        epoch: int = 0
        last_sequence: int = 0
        last_offset: int = 0
        offset_delta: int = 0
        timestamp: int = 0
        coordinator_epoch: int = 0
        current_txn_first_offset: int = 0


class ProducerSnapshot(Message):
    __slots__ = ("crc", "producer_entries")
    MIN_VERSION = 1
    MAX_VERSION = 1
    FIELDS = (
        ("crc", "uint32", "1", 0),
        ("producer_entries", "[]ProducerEntry", "1", ()),
    )

    if TYPE_CHECKING:
        crc: int = 0
        producer_entries: list[ProducerEntry] = EMPTY

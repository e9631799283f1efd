"""ShareSnapshotValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class StateBatch(Message):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    FIELDS = (
        ("first_offset", "int64", "0+", 0),
        ("last_offset", "int64", "0+", 0),
        ("delivery_state", "int8", "0+", 0),
        ("delivery_count", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        first_offset: int = 0
        last_offset: int = 0
        delivery_state: int = 0
        delivery_count: int = 0


class ShareSnapshotValue(Message):
    __slots__ = (
        "snapshot_epoch",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "create_timestamp",
        "write_timestamp",
        "state_batches",
    )
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("snapshot_epoch", "int32", "0+", 0),
        ("state_epoch", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
        ("start_offset", "int64", "0+", 0),
        ("delivery_complete_count", "int32", "0+", -1, "", False, 0, "0+"),
        ("create_timestamp", "int64", "0+", 0),
        ("write_timestamp", "int64", "0+", 0),
        ("state_batches", "[]StateBatch", "0+", ()),
    )

    if TYPE_CHECKING:
        snapshot_epoch: int = 0
        state_epoch: int = 0
        leader_epoch: int = 0
        start_offset: int = 0
        delivery_complete_count: int = -1
        create_timestamp: int = 0
        write_timestamp: int = 0
        state_batches: list[StateBatch] = EMPTY

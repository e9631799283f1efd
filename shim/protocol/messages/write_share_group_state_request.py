"""WriteShareGroupStateRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

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


class PartitionData(Message):
    __slots__ = ("partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("state_epoch", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
        ("start_offset", "int64", "0+", 0),
        ("delivery_complete_count", "int32", "1+", -1, "", True),
        ("state_batches", "[]StateBatch", "0+", ()),
    )

    if TYPE_CHECKING:
        partition: int = 0
        state_epoch: int = 0
        leader_epoch: int = 0
        start_offset: int = 0
        delivery_complete_count: int = -1
        state_batches: list[StateBatch] = EMPTY


class WriteStateData(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionData] = EMPTY


class WriteShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics")
    API_KEY = 85
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]WriteStateData", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[WriteStateData] = EMPTY

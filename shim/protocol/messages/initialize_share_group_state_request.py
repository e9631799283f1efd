"""InitializeShareGroupStateRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionData(Message):
    __slots__ = ("partition", "state_epoch", "start_offset")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("state_epoch", "int32", "0+", 0),
        ("start_offset", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        partition: int = 0
        state_epoch: int = 0
        start_offset: int = 0


class InitializeStateData(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionData] = EMPTY


class InitializeShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics")
    API_KEY = 83
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]InitializeStateData", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[InitializeStateData] = EMPTY

"""ListOffsetsRequest, versions 1-11. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ListOffsetsPartition(Message):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("current_leader_epoch", "int32", "4+", -1, "", True),
        ("timestamp", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        current_leader_epoch: int = -1
        timestamp: int = 0


class ListOffsetsTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]ListOffsetsPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[ListOffsetsPartition] = EMPTY


class ListOffsetsRequest(Message):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_FROM = 6
    FIELDS = (
        ("replica_id", "int32", "0+", 0),
        ("isolation_level", "int8", "2+", 0),
        ("topics", "[]ListOffsetsTopic", "0+", ()),
        ("timeout_ms", "int32", "10+", 0, "", True),
    )

    if TYPE_CHECKING:
        replica_id: int = 0
        isolation_level: int = 0
        topics: list[ListOffsetsTopic] = EMPTY
        timeout_ms: int = 0

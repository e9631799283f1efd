"""OffsetForLeaderEpochRequest, versions 2-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class OffsetForLeaderPartition(Message):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("current_leader_epoch", "int32", "2+", -1, "", True),
        ("leader_epoch", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        partition: int = 0
        current_leader_epoch: int = -1
        leader_epoch: int = 0


class OffsetForLeaderTopic(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]OffsetForLeaderPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[OffsetForLeaderPartition] = EMPTY


class OffsetForLeaderEpochRequest(Message):
    __slots__ = ("replica_id", "topics")
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("replica_id", "int32", "3+", -2, "", True),
        ("topics", "[]OffsetForLeaderTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        replica_id: int = -2
        topics: list[OffsetForLeaderTopic] = EMPTY

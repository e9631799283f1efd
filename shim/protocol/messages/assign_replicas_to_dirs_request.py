"""AssignReplicasToDirsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionData(Message):
    __slots__ = ("partition_index",)
    FIELDS = (("partition_index", "int32", "0+", 0),)

    if TYPE_CHECKING:
        partition_index: int = 0


class TopicData(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionData] = EMPTY


class DirectoryData(Message):
    __slots__ = ("id", "topics")
    FIELDS = (
        ("id", "uuid", "0+", ZERO_UUID),
        ("topics", "[]TopicData", "0+", ()),
    )

    if TYPE_CHECKING:
        id: bytes = ZERO_UUID
        topics: list[TopicData] = EMPTY


class AssignReplicasToDirsRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "directories")
    API_KEY = 73
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("broker_epoch", "int64", "0+", -1),
        ("directories", "[]DirectoryData", "0+", ()),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        broker_epoch: int = -1
        directories: list[DirectoryData] = EMPTY

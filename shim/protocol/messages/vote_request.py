"""VoteRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionData(Message):
    __slots__ = (
        "partition_index",
        "replica_epoch",
        "replica_id",
        "replica_directory_id",
        "voter_directory_id",
        "last_offset_epoch",
        "last_offset",
        "pre_vote",
    )
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("replica_epoch", "int32", "0+", 0),
        ("replica_id", "int32", "0+", 0),
        ("replica_directory_id", "uuid", "1+", ZERO_UUID, "", True),
        ("voter_directory_id", "uuid", "1+", ZERO_UUID, "", True),
        ("last_offset_epoch", "int32", "0+", 0),
        ("last_offset", "int64", "0+", 0),
        ("pre_vote", "bool", "2+", False),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        replica_epoch: int = 0
        replica_id: int = 0
        replica_directory_id: bytes = ZERO_UUID
        voter_directory_id: bytes = ZERO_UUID
        last_offset_epoch: int = 0
        last_offset: int = 0
        pre_vote: bool = False


class TopicData(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partitions: list[PartitionData] = EMPTY


class VoteRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "topics")
    API_KEY = 52
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("cluster_id", "string", "0+", None, "0+"),
        ("voter_id", "int32", "1+", -1, "", True),
        ("topics", "[]TopicData", "0+", ()),
    )

    if TYPE_CHECKING:
        cluster_id: str | None = None
        voter_id: int = -1
        topics: list[TopicData] = EMPTY

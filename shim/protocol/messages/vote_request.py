"""VoteRequest, versions 0-2. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


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

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        voter_directory_id: bytes = ZERO_UUID,
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.replica_epoch = replica_epoch
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.voter_directory_id = voter_directory_id
        self.last_offset_epoch = last_offset_epoch
        self.last_offset = last_offset
        self.pre_vote = pre_vote
        self.unknown_tags = None


class TopicData(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    def __init__(self, *, topic_name: str = "", partitions: list[PartitionData] = EMPTY) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


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

    def __init__(self, *, cluster_id: str | None = None, voter_id: int = -1, topics: list[TopicData] = EMPTY) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

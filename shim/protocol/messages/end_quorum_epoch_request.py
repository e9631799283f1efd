"""EndQuorumEpochRequest, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class ReplicaInfo(Message):
    __slots__ = ("candidate_id", "candidate_directory_id")
    FIELDS = (
        ("candidate_id", "int32", "1+", 0),
        ("candidate_directory_id", "uuid", "1+", ZERO_UUID),
    )

    def __init__(self, *, candidate_id: int = 0, candidate_directory_id: bytes = ZERO_UUID) -> None:
        self.candidate_id = candidate_id
        self.candidate_directory_id = candidate_directory_id
        self.unknown_tags = None


class PartitionData(Message):
    __slots__ = ("partition_index", "leader_id", "leader_epoch", "preferred_successors", "preferred_candidates")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
        ("preferred_successors", "[]int32", "0", (), "", True),
        ("preferred_candidates", "[]ReplicaInfo", "1+", (), "", True),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        preferred_successors: list[int] = EMPTY,
        preferred_candidates: list[ReplicaInfo] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.preferred_successors = [] if preferred_successors is EMPTY else preferred_successors
        self.preferred_candidates = [] if preferred_candidates is EMPTY else preferred_candidates
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


class LeaderEndpoint(Message):
    __slots__ = ("name", "host", "port")
    FIELDS = (
        ("name", "string", "1+", ""),
        ("host", "string", "1+", ""),
        ("port", "uint16", "1+", 0),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.unknown_tags = None


class EndQuorumEpochRequest(Message):
    __slots__ = ("cluster_id", "topics", "leader_endpoints")
    API_KEY = 54
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("cluster_id", "string", "0+", None, "0+"),
        ("topics", "[]TopicData", "0+", ()),
        ("leader_endpoints", "[]LeaderEndpoint", "1+", (), "", True),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[TopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = [] if topics is EMPTY else topics
        self.leader_endpoints = [] if leader_endpoints is EMPTY else leader_endpoints
        self.unknown_tags = None

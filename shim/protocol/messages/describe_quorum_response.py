"""DescribeQuorumResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class ReplicaState(Message):
    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )
    FIELDS = (
        ("replica_id", "int32", "0+", 0),
        ("replica_directory_id", "uuid", "2+", ZERO_UUID),
        ("log_end_offset", "int64", "0+", 0),
        ("last_fetch_timestamp", "int64", "1+", -1, "", True),
        ("last_caught_up_timestamp", "int64", "1+", -1, "", True),
    )

    if TYPE_CHECKING:
        replica_id: int = 0
        replica_directory_id: bytes = ZERO_UUID
        log_end_offset: int = 0
        last_fetch_timestamp: int = -1
        last_caught_up_timestamp: int = -1


class PartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "2+", "", "2+", True),
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
        ("high_watermark", "int64", "0+", 0),
        ("current_voters", "[]ReplicaState", "0+", ()),
        ("observers", "[]ReplicaState", "0+", ()),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = ""
        leader_id: int = 0
        leader_epoch: int = 0
        high_watermark: int = 0
        current_voters: list[ReplicaState] = EMPTY
        observers: list[ReplicaState] = EMPTY


class TopicData(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partitions: list[PartitionData] = EMPTY


class Listener(Message):
    __slots__ = ("name", "host", "port")
    FIELDS = (
        ("name", "string", "2+", ""),
        ("host", "string", "2+", ""),
        ("port", "uint16", "2+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        host: str = ""
        port: int = 0


class Node(Message):
    __slots__ = ("node_id", "listeners")
    FIELDS = (
        ("node_id", "int32", "2+", 0),
        ("listeners", "[]Listener", "2+", ()),
    )

    if TYPE_CHECKING:
        node_id: int = 0
        listeners: list[Listener] = EMPTY


class DescribeQuorumResponse(Message):
    __slots__ = ("error_code", "error_message", "topics", "nodes")
    API_KEY = 55
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "2+", "", "2+", True),
        ("topics", "[]TopicData", "0+", ()),
        ("nodes", "[]Node", "2+", ()),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""
        topics: list[TopicData] = EMPTY
        nodes: list[Node] = EMPTY

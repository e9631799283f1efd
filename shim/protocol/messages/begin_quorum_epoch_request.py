"""BeginQuorumEpochRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionData(Message):
    __slots__ = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("voter_directory_id", "uuid", "1+", ZERO_UUID, "", True),
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        voter_directory_id: bytes = ZERO_UUID
        leader_id: int = 0
        leader_epoch: int = 0


class TopicData(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partitions: list[PartitionData] = EMPTY


class LeaderEndpoint(Message):
    __slots__ = ("name", "host", "port")
    FIELDS = (
        ("name", "string", "1+", ""),
        ("host", "string", "1+", ""),
        ("port", "uint16", "1+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        host: str = ""
        port: int = 0


class BeginQuorumEpochRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "topics", "leader_endpoints")
    API_KEY = 53
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("cluster_id", "string", "0+", None, "0+"),
        ("voter_id", "int32", "1+", -1, "", True),
        ("topics", "[]TopicData", "0+", ()),
        ("leader_endpoints", "[]LeaderEndpoint", "1+", (), "", True),
    )

    if TYPE_CHECKING:
        cluster_id: str | None = None
        voter_id: int = -1
        topics: list[TopicData] = EMPTY
        leader_endpoints: list[LeaderEndpoint] = EMPTY

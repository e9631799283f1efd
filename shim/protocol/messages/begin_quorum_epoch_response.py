"""BeginQuorumEpochResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class PartitionData(Message):
    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
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


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port")
    FIELDS = (
        ("node_id", "int32", "1+", 0),
        ("host", "string", "1+", ""),
        ("port", "uint16", "1+", 0),
    )

    if TYPE_CHECKING:
        node_id: int = 0
        host: str = ""
        port: int = 0


class BeginQuorumEpochResponse(Message):
    __slots__ = ("error_code", "topics", "node_endpoints")
    API_KEY = 53
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("topics", "[]TopicData", "0+", ()),
        ("node_endpoints", "[]NodeEndpoint", "1+", (), "", False, 0, "1+"),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        topics: list[TopicData] = EMPTY
        node_endpoints: list[NodeEndpoint] = EMPTY

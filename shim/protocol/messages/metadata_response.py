"""MetadataResponse, versions 0-13. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class MetadataResponseBroker(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    FIELDS = (
        ("node_id", "int32", "0+", 0),
        ("host", "string", "0+", ""),
        ("port", "int32", "0+", 0),
        ("rack", "string", "1+", None, "1+", True),
    )

    if TYPE_CHECKING:
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None


class MetadataResponsePartition(Message):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("partition_index", "int32", "0+", 0),
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "7+", -1, "", True),
        ("replica_nodes", "[]int32", "0+", ()),
        ("isr_nodes", "[]int32", "0+", ()),
        ("offline_replicas", "[]int32", "5+", (), "", True),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        partition_index: int = 0
        leader_id: int = 0
        leader_epoch: int = -1
        replica_nodes: list[int] = EMPTY
        isr_nodes: list[int] = EMPTY
        offline_replicas: list[int] = EMPTY


class MetadataResponseTopic(Message):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("name", "string", "0+", "", "12+"),
        ("topic_id", "uuid", "10+", ZERO_UUID, "", True),
        ("is_internal", "bool", "1+", False, "", True),
        ("partitions", "[]MetadataResponsePartition", "0+", ()),
        ("topic_authorized_operations", "int32", "8+", -2147483648),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        name: str | None = ""
        topic_id: bytes = ZERO_UUID
        is_internal: bool = False
        partitions: list[MetadataResponsePartition] = EMPTY
        topic_authorized_operations: int = -2147483648


class MetadataResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    FIELDS = (
        ("throttle_time_ms", "int32", "3+", 0, "", True),
        ("brokers", "[]MetadataResponseBroker", "0+", ()),
        ("cluster_id", "string", "2+", None, "2+", True),
        ("controller_id", "int32", "1+", -1, "", True),
        ("topics", "[]MetadataResponseTopic", "0+", ()),
        ("cluster_authorized_operations", "int32", "8-10", -2147483648),
        ("error_code", "int16", "13+", 0, "", True),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        brokers: list[MetadataResponseBroker] = EMPTY
        cluster_id: str | None = None
        controller_id: int = -1
        topics: list[MetadataResponseTopic] = EMPTY
        cluster_authorized_operations: int = -2147483648
        error_code: int = 0

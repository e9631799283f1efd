"""DescribeTopicPartitionsResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class DescribeTopicPartitionsResponsePartition(Message):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("partition_index", "int32", "0+", 0),
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", -1, "", True),
        ("replica_nodes", "[]int32", "0+", ()),
        ("isr_nodes", "[]int32", "0+", ()),
        ("eligible_leader_replicas", "[]int32", "0+", None, "0+"),
        ("last_known_elr", "[]int32", "0+", None, "0+"),
        ("offline_replicas", "[]int32", "0+", (), "", True),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        partition_index: int = 0
        leader_id: int = 0
        leader_epoch: int = -1
        replica_nodes: list[int] = EMPTY
        isr_nodes: list[int] = EMPTY
        eligible_leader_replicas: list[int] | None = None
        last_known_elr: list[int] | None = None
        offline_replicas: list[int] = EMPTY


class DescribeTopicPartitionsResponseTopic(Message):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("name", "string", "0+", "", "0+"),
        ("topic_id", "uuid", "0+", ZERO_UUID, "", True),
        ("is_internal", "bool", "0+", False, "", True),
        ("partitions", "[]DescribeTopicPartitionsResponsePartition", "0+", ()),
        ("topic_authorized_operations", "int32", "0+", -2147483648),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        name: str | None = ""
        topic_id: bytes = ZERO_UUID
        is_internal: bool = False
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY
        topic_authorized_operations: int = -2147483648


class Cursor(Message):
    __slots__ = ("topic_name", "partition_index")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partition_index", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partition_index: int = 0


class DescribeTopicPartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "next_cursor")
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0, "", True),
        ("topics", "[]DescribeTopicPartitionsResponseTopic", "0+", ()),
        ("next_cursor", "Cursor", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY
        next_cursor: Cursor | None = None

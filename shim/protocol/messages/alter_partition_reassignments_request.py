"""AlterPartitionReassignmentsRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ReassignablePartition(Message):
    __slots__ = ("partition_index", "replicas")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("replicas", "[]int32", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        replicas: list[int] | None = None


class ReassignableTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]ReassignablePartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[ReassignablePartition] = EMPTY


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")
    API_KEY = 45
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("timeout_ms", "int32", "0+", 60000),
        ("allow_replication_factor_change", "bool", "1+", True),
        ("topics", "[]ReassignableTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        timeout_ms: int = 60000
        allow_replication_factor_change: bool = True
        topics: list[ReassignableTopic] = EMPTY

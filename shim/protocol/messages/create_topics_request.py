"""CreateTopicsRequest, versions 2-7. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class CreatableReplicaAssignment(Message):
    __slots__ = ("partition_index", "broker_ids")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("broker_ids", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        broker_ids: list[int] = EMPTY


class CreatableTopicConfig(Message):
    __slots__ = ("name", "value")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("value", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        name: str = ""
        value: str | None = ""


class CreatableTopic(Message):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("num_partitions", "int32", "0+", 0),
        ("replication_factor", "int16", "0+", 0),
        ("assignments", "[]CreatableReplicaAssignment", "0+", ()),
        ("configs", "[]CreatableTopicConfig", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        num_partitions: int = 0
        replication_factor: int = 0
        assignments: list[CreatableReplicaAssignment] = EMPTY
        configs: list[CreatableTopicConfig] = EMPTY


class CreateTopicsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("topics", "[]CreatableTopic", "0+", ()),
        ("timeout_ms", "int32", "0+", 60000),
        ("validate_only", "bool", "1+", False),
    )

    if TYPE_CHECKING:
        topics: list[CreatableTopic] = EMPTY
        timeout_ms: int = 60000
        validate_only: bool = False

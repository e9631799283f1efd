"""StreamsGroupHeartbeatResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class Status(Message):
    __slots__ = ("status_code", "status_detail")
    FIELDS = (
        ("status_code", "int8", "0+", 0),
        ("status_detail", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        status_code: int = 0
        status_detail: str = ""


class TaskIds(Message):
    __slots__ = ("subtopology_id", "partitions")
    FIELDS = (
        ("subtopology_id", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        subtopology_id: str = ""
        partitions: list[int] = EMPTY


class Endpoint(Message):
    __slots__ = ("host", "port")
    FIELDS = (
        ("host", "string", "0+", ""),
        ("port", "uint16", "0+", 0),
    )

    if TYPE_CHECKING:
        host: str = ""
        port: int = 0


class TopicPartition(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[int] = EMPTY


class EndpointToPartitions(Message):
    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions")
    FIELDS = (
        ("user_endpoint", "Endpoint", "0+", ()),
        ("active_partitions", "[]TopicPartition", "0+", ()),
        ("standby_partitions", "[]TopicPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        user_endpoint: Endpoint = EMPTY
        active_partitions: list[TopicPartition] = EMPTY
        standby_partitions: list[TopicPartition] = EMPTY


class StreamsGroupHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )
    API_KEY = 88
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("member_id", "string", "0+", ""),
        ("member_epoch", "int32", "0+", 0),
        ("heartbeat_interval_ms", "int32", "0+", 0),
        ("acceptable_recovery_lag", "int32", "0+", 0),
        ("task_offset_interval_ms", "int32", "0+", 0),
        ("status", "[]Status", "0+", (), "0+"),
        ("active_tasks", "[]TaskIds", "0+", None, "0+"),
        ("standby_tasks", "[]TaskIds", "0+", None, "0+"),
        ("warmup_tasks", "[]TaskIds", "0+", None, "0+"),
        ("endpoint_information_epoch", "int32", "0+", 0),
        ("partitions_by_user_endpoint", "[]EndpointToPartitions", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = None
        member_id: str = ""
        member_epoch: int = 0
        heartbeat_interval_ms: int = 0
        acceptable_recovery_lag: int = 0
        task_offset_interval_ms: int = 0
        status: list[Status] | None = EMPTY
        active_tasks: list[TaskIds] | None = None
        standby_tasks: list[TaskIds] | None = None
        warmup_tasks: list[TaskIds] | None = None
        endpoint_information_epoch: int = 0
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None

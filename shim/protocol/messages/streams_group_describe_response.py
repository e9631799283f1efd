"""StreamsGroupDescribeResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class KeyValue(Message):
    __slots__ = ("key", "value")
    FIELDS = (
        ("key", "string", "0+", ""),
        ("value", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        key: str = ""
        value: str = ""


class TopicInfo(Message):
    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "int32", "0+", 0),
        ("replication_factor", "int16", "0+", 0),
        ("topic_configs", "[]KeyValue", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: int = 0
        replication_factor: int = 0
        topic_configs: list[KeyValue] = EMPTY


class Subtopology(Message):
    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )
    FIELDS = (
        ("subtopology_id", "string", "0+", ""),
        ("source_topics", "[]string", "0+", ()),
        ("repartition_sink_topics", "[]string", "0+", ()),
        ("state_changelog_topics", "[]TopicInfo", "0+", ()),
        ("repartition_source_topics", "[]TopicInfo", "0+", ()),
    )

    if TYPE_CHECKING:
        subtopology_id: str = ""
        source_topics: list[str] = EMPTY
        repartition_sink_topics: list[str] = EMPTY
        state_changelog_topics: list[TopicInfo] = EMPTY
        repartition_source_topics: list[TopicInfo] = EMPTY


class Topology(Message):
    __slots__ = ("epoch", "subtopologies")
    FIELDS = (
        ("epoch", "int32", "0+", 0),
        ("subtopologies", "[]Subtopology", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        epoch: int = 0
        subtopologies: list[Subtopology] | None = None


class Endpoint(Message):
    __slots__ = ("host", "port")
    FIELDS = (
        ("host", "string", "0+", ""),
        ("port", "uint16", "0+", 0),
    )

    if TYPE_CHECKING:
        host: str = ""
        port: int = 0


class TaskOffset(Message):
    __slots__ = ("subtopology_id", "partition", "offset")
    FIELDS = (
        ("subtopology_id", "string", "0+", ""),
        ("partition", "int32", "0+", 0),
        ("offset", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        subtopology_id: str = ""
        partition: int = 0
        offset: int = 0


class TaskIds(Message):
    __slots__ = ("subtopology_id", "partitions")
    FIELDS = (
        ("subtopology_id", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        subtopology_id: str = ""
        partitions: list[int] = EMPTY


class Assignment(Message):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    FIELDS = (
        ("active_tasks", "[]TaskIds", "0+", ()),
        ("standby_tasks", "[]TaskIds", "0+", ()),
        ("warmup_tasks", "[]TaskIds", "0+", ()),
    )

    if TYPE_CHECKING:
        active_tasks: list[TaskIds] = EMPTY
        standby_tasks: list[TaskIds] = EMPTY
        warmup_tasks: list[TaskIds] = EMPTY


class Member(Message):
    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )
    FIELDS = (
        ("member_id", "string", "0+", ""),
        ("member_epoch", "int32", "0+", 0),
        ("instance_id", "string", "0+", None, "0+"),
        ("rack_id", "string", "0+", None, "0+"),
        ("client_id", "string", "0+", ""),
        ("client_host", "string", "0+", ""),
        ("topology_epoch", "int32", "0+", 0),
        ("process_id", "string", "0+", ""),
        ("user_endpoint", "Endpoint", "0+", None, "0+"),
        ("client_tags", "[]KeyValue", "0+", ()),
        ("task_offsets", "[]TaskOffset", "0+", ()),
        ("task_end_offsets", "[]TaskOffset", "0+", ()),
        ("assignment", "Assignment", "0+", ()),
        ("target_assignment", "Assignment", "0+", ()),
        ("is_classic", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        member_epoch: int = 0
        instance_id: str | None = None
        rack_id: str | None = None
        client_id: str = ""
        client_host: str = ""
        topology_epoch: int = 0
        process_id: str = ""
        user_endpoint: Endpoint | None = None
        client_tags: list[KeyValue] = EMPTY
        task_offsets: list[TaskOffset] = EMPTY
        task_end_offsets: list[TaskOffset] = EMPTY
        assignment: Assignment = EMPTY
        target_assignment: Assignment = EMPTY
        is_classic: bool = False


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
    )
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("group_id", "string", "0+", ""),
        ("group_state", "string", "0+", ""),
        ("group_epoch", "int32", "0+", 0),
        ("assignment_epoch", "int32", "0+", 0),
        ("topology", "Topology", "0+", None, "0+"),
        ("members", "[]Member", "0+", ()),
        ("authorized_operations", "int32", "0+", -2147483648),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        topology: Topology | None = None
        members: list[Member] = EMPTY
        authorized_operations: int = -2147483648


class StreamsGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 89
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("groups", "[]DescribedGroup", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        groups: list[DescribedGroup] = EMPTY

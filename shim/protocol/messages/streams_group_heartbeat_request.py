"""StreamsGroupHeartbeatRequest, version 0. Written by transcribe.py: change nothing here."""

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


class CopartitionGroup(Message):
    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")
    FIELDS = (
        ("source_topics", "[]int16", "0+", ()),
        ("source_topic_regex", "[]int16", "0+", ()),
        ("repartition_source_topics", "[]int16", "0+", ()),
    )

    if TYPE_CHECKING:
        source_topics: list[int] = EMPTY
        source_topic_regex: list[int] = EMPTY
        repartition_source_topics: list[int] = EMPTY


class Subtopology(Message):
    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )
    FIELDS = (
        ("subtopology_id", "string", "0+", ""),
        ("source_topics", "[]string", "0+", ()),
        ("source_topic_regex", "[]string", "0+", ()),
        ("state_changelog_topics", "[]TopicInfo", "0+", ()),
        ("repartition_sink_topics", "[]string", "0+", ()),
        ("repartition_source_topics", "[]TopicInfo", "0+", ()),
        ("copartition_groups", "[]CopartitionGroup", "0+", ()),
    )

    if TYPE_CHECKING:
        subtopology_id: str = ""
        source_topics: list[str] = EMPTY
        source_topic_regex: list[str] = EMPTY
        state_changelog_topics: list[TopicInfo] = EMPTY
        repartition_sink_topics: list[str] = EMPTY
        repartition_source_topics: list[TopicInfo] = EMPTY
        copartition_groups: list[CopartitionGroup] = EMPTY


class Topology(Message):
    __slots__ = ("epoch", "subtopologies")
    FIELDS = (
        ("epoch", "int32", "0+", 0),
        ("subtopologies", "[]Subtopology", "0+", ()),
    )

    if TYPE_CHECKING:
        epoch: int = 0
        subtopologies: list[Subtopology] = EMPTY


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


class StreamsGroupHeartbeatRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )
    API_KEY = 88
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("member_id", "string", "0+", ""),
        ("member_epoch", "int32", "0+", 0),
        ("endpoint_information_epoch", "int32", "0+", 0),
        ("instance_id", "string", "0+", None, "0+"),
        ("rack_id", "string", "0+", None, "0+"),
        ("rebalance_timeout_ms", "int32", "0+", -1),
        ("topology", "Topology", "0+", None, "0+"),
        ("active_tasks", "[]TaskIds", "0+", None, "0+"),
        ("standby_tasks", "[]TaskIds", "0+", None, "0+"),
        ("warmup_tasks", "[]TaskIds", "0+", None, "0+"),
        ("process_id", "string", "0+", None, "0+"),
        ("user_endpoint", "Endpoint", "0+", None, "0+"),
        ("client_tags", "[]KeyValue", "0+", None, "0+"),
        ("task_offsets", "[]TaskOffset", "0+", None, "0+"),
        ("task_end_offsets", "[]TaskOffset", "0+", None, "0+"),
        ("shutdown_application", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        member_id: str = ""
        member_epoch: int = 0
        endpoint_information_epoch: int = 0
        instance_id: str | None = None
        rack_id: str | None = None
        rebalance_timeout_ms: int = -1
        topology: Topology | None = None
        active_tasks: list[TaskIds] | None = None
        standby_tasks: list[TaskIds] | None = None
        warmup_tasks: list[TaskIds] | None = None
        process_id: str | None = None
        user_endpoint: Endpoint | None = None
        client_tags: list[KeyValue] | None = None
        task_offsets: list[TaskOffset] | None = None
        task_end_offsets: list[TaskOffset] | None = None
        shutdown_application: bool = False

"""StreamsGroupTopologyValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TopicConfig(Message):
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
        ("topic_configs", "[]TopicConfig", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: int = 0
        replication_factor: int = 0
        topic_configs: list[TopicConfig] = EMPTY


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


class StreamsGroupTopologyValue(Message):
    __slots__ = ("epoch", "subtopologies")
    API_KEY = 23
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("epoch", "int32", "0+", 0),
        ("subtopologies", "[]Subtopology", "0+", ()),
    )

    if TYPE_CHECKING:
        epoch: int = 0
        subtopologies: list[Subtopology] = EMPTY

"""The topology of a streams group: what its members sent when the first of them joined (Kafka: StreamsTopology)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.java_order import order_strings
from kafka_shim.protocol.records.streams_group_topology_value import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.protocol.messages import streams_group_heartbeat_request as heartbeat_request


class Topology:
    """Never changed in place. `subtopologies` is in the order of Kafka's map, on which partition counts may depend."""

    __slots__ = ("epoch", "required_topics", "subtopologies", "subtopology_by_source", "value")

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        by_id = {each.subtopology_id: each for each in value.subtopologies}
        if len(by_id) < len(value.subtopologies) or value.epoch < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)  # as Kafka answers an id that is there twice
        self.subtopologies = {name: by_id[name] for name in order_strings(by_id)}
        self.subtopology_by_source: dict[str, str] = {}
        required: dict[str, None] = {}
        for name, subtopology in self.subtopologies.items():
            sources = source_names(subtopology)
            self.subtopology_by_source.update(dict.fromkeys(sources, name))
            required.update(dict.fromkeys(sources))
            required.update((topic.name, None) for topic in subtopology.state_changelog_topics)
        # In the order in which Kafka meets them.
        self.required_topics = required

    def is_same(self, other: Topology) -> bool:
        """Returns whether the other topology is equal, in its epoch too."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def source_names(subtopology: Subtopology) -> list[str]:
    """Returns the topics that a subtopology reads: the application's own, then those for repartitioning."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


# What a topic takes in the record beside its name, if the topology says more of it than that, and a subtopology.
_TOPIC_BYTES = 9
_SUBTOPOLOGY_BYTES = 8


def least_bytes(sent: heartbeat_request.Topology) -> int:
    """Returns what the record's value of a topology in a request takes at least."""
    size_bytes = 0
    for each in sent.subtopologies:
        size_bytes += _SUBTOPOLOGY_BYTES + len(each.subtopology_id)
        for names in (each.source_topics, each.repartition_sink_topics):
            size_bytes += sum(map(len, names)) + len(names)
        for topics in (each.repartition_source_topics, each.state_changelog_topics):
            size_bytes += sum(len(topic.name) for topic in topics) + _TOPIC_BYTES * len(topics)
    return size_bytes


def topology_value(sent: heartbeat_request.Topology) -> StreamsGroupTopologyValue:
    """Returns the record's value of a topology in a request."""
    return StreamsGroupTopologyValue(
        epoch=sent.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=list(each.source_topics),
                source_topic_regex=list(each.source_topic_regex),
                repartition_sink_topics=list(each.repartition_sink_topics),
                repartition_source_topics=[_topic(topic) for topic in each.repartition_source_topics],
                state_changelog_topics=[_topic(topic) for topic in each.state_changelog_topics],
                copartition_groups=[
                    CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in each.copartition_groups
                ],
            )
            for each in sent.subtopologies
        ],
    )


def _topic(sent: heartbeat_request.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=sent.name,
        partitions=sent.partitions,
        replication_factor=sent.replication_factor,
        topic_configs=[TopicConfig(key=each.key, value=each.value) for each in sent.topic_configs],
    )

"""Which application instance has which partitions, for queries of their state (Kafka: EndpointToPartitionsManager)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.java_order import order_strings, order_timeline
from kafka_shim.protocol.messages.streams_group_heartbeat_response import (
    Endpoint,
    EndpointToPartitions,
    TopicPartition,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.streams.configured import ConfiguredTopology
    from kafka_shim.group.streams.group import StreamsGroup
    from kafka_shim.group.streams.member import StreamsMember


def partitions_by_endpoint(
    group: StreamsGroup, updated: StreamsMember, configured: ConfiguredTopology, image: CoordinatorMetadataImage
) -> list[EndpointToPartitions]:
    """Returns the partitions of each member with an endpoint, those of `updated` last. As in Kafka, what was found of a
    member before stays until its records or the topology's topics have changed: the heartbeat that moves an endpoint
    is still answered with the old one. Raises UNKNOWN_SERVER_ERROR, as Kafka does, if a topic of these is missing."""
    others = (group.members[name] for name in order_timeline(group.members) if name != updated.member_id)
    found = []
    for member in (*others, updated):
        if member.user_endpoint is None:
            continue
        entry = group.endpoints.get(member.member_id)
        if entry is None:
            host, port = member.user_endpoint
            entry = group.endpoints[member.member_id] = EndpointToPartitions(
                user_endpoint=Endpoint(host=host, port=port),
                active_partitions=_partitions(member.assigned.active, configured, image),
                standby_partitions=_partitions(member.assigned.standby, configured, image),
            )
        found.append(entry)
    return found


def _partitions(
    tasks: Mapping[str, Collection[int]], configured: ConfiguredTopology, image: CoordinatorMetadataImage
) -> list[TopicPartition]:
    found = []
    if configured.subtopologies is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    for name in order_strings(tasks):
        subtopology = configured.subtopologies.get(name)
        if subtopology is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        for source in order_strings({*subtopology.source_topics, *subtopology.repartition_sources}):
            topic = image.metadata.topics.get(source)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
            # A topic with fewer partitions than the subtopology has tasks: Kafka shows as many as it has.
            numbers = sorted(tasks[name])[: len(topic.partitions)]
            found.append(TopicPartition(topic=source, partitions=numbers))
    return found

"""Groups of the streams protocol as administrators see them: StreamsGroupDescribe (key 89)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.group.streams.group import StreamsGroup
from kafka_shim.group.streams.tasks import entries_of
from kafka_shim.java_order import order_strings, order_timeline
from kafka_shim.protocol.messages import streams_group_describe_response as response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.kind import Group
    from kafka_shim.group.streams.configured import ConfiguredTopology, InternalTopic
    from kafka_shim.group.streams.member import StreamsMember
    from kafka_shim.group.streams.tasks import HeldTasks, Tasks
    from kafka_shim.group.streams.topology import Topology
    from kafka_shim.protocol.records.streams_group_topology_value import TopicInfo


def described_streams(group_id: str, group: Group | None) -> response.DescribedGroup:
    """Describe a group of the streams protocol. Any other group is GROUP_ID_NOT_FOUND."""
    if not isinstance(group, StreamsGroup):
        reason = "not found" if group is None else "is not a streams group"
        return response.DescribedGroup(
            group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=f"Group {group_id} {reason}."
        )
    configured, topology = group.configured, group.topology
    if topology is None:
        # Its record is written with the group's first one: the log lost it.
        return response.DescribedGroup(group_id=group_id, error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    is_ready = configured is not None and configured.is_ready
    return response.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_configured(configured) if configured is not None and is_ready else _as_sent(topology),
        members=[_member(group, group.members[member_id]) for member_id in order_timeline(group.members)],
    )


def _member(group: StreamsGroup, member: StreamsMember) -> response.Member:
    endpoint = member.user_endpoint
    target = group.target.get(member.member_id)
    return response.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else response.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[
            response.KeyValue(key=key, value=member.client_tags[key]) for key in order_strings(member.client_tags)
        ],
        assignment=_assignment(member.assigned),
        target_assignment=response.Assignment() if target is None else _assignment(target),
    )


def _assignment(tasks: Tasks | HeldTasks) -> response.Assignment:
    return response.Assignment(
        active_tasks=entries_of(response.TaskIds, tasks.active),
        standby_tasks=entries_of(response.TaskIds, tasks.standby),
        warmup_tasks=entries_of(response.TaskIds, tasks.warmup),
    )


def _configured(topology: ConfiguredTopology) -> response.Topology:
    return response.Topology(
        epoch=topology.epoch,
        subtopologies=[
            response.Subtopology(
                subtopology_id=name,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sinks),
                repartition_source_topics=[
                    _configured_topic(each.repartition_sources[topic]) for topic in sorted(each.repartition_sources)
                ],
                state_changelog_topics=[_configured_topic(each.changelogs[topic]) for topic in sorted(each.changelogs)],
            )
            for name, each in (topology.subtopologies or {}).items()
        ],
    )


def _configured_topic(topic: InternalTopic) -> response.TopicInfo:
    return response.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[response.KeyValue(key=key, value=topic.configs[key]) for key in order_strings(topic.configs)],
    )


def _as_sent(topology: Topology) -> response.Topology:
    return response.Topology(
        epoch=topology.epoch,
        subtopologies=[
            response.Subtopology(
                subtopology_id=name,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                repartition_source_topics=_sent_topics(each.repartition_source_topics),
                state_changelog_topics=_sent_topics(each.state_changelog_topics),
            )
            for name, each in sorted(topology.subtopologies.items())
        ],
    )


def _sent_topics(topics: list[TopicInfo]) -> list[response.TopicInfo]:
    return [
        response.TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[response.KeyValue(key=each.key, value=each.value) for each in topic.topic_configs],
        )
        for topic in sorted(topics, key=lambda each: each.name)
    ]

"""StreamsGroupDescribe (key 89), version 0.

Returns epochs, topology, members, and current and target tasks of groups of the streams protocol (KIP-1071);
GROUP_ID_NOT_FOUND for any other group. A group with a topic that the client may not describe is
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from kafka_shim.api.k88_streams_group_heartbeat import check_protocol
from kafka_shim.authorization import authorized_operations, hide_groups_by_topic, is_authorized
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.streams.describe import described_streams
from kafka_shim.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_shim.protocol.messages.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.group.coordinator import GroupCoordinator
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 89, 0, 0
REQUEST, RESPONSE = StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
ABANDONABLE = True


def handle(context: Context, request: StreamsGroupDescribeRequest) -> Steps[StreamsGroupDescribeResponse]:
    check_protocol(context.broker)
    refused, found = [], []
    for group_id in request.group_ids:
        yield
        if not is_authorized(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        group = _described(context.broker.groups, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
        found.append(group)
    response = StreamsGroupDescribeResponse(groups=refused + found)
    yield from hide_groups_by_topic(context, response.groups, _topics, _hidden)
    return response


def _described(groups: GroupCoordinator, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return described_streams(group_id, groups.find(group_id))
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)


def _hidden(group: DescribedGroup) -> DescribedGroup:
    """What stands for a group whose topology has a topic that the client may not describe."""
    return DescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The described group uses topics that the client is not authorized to describe.",
    )


def _topics(group: DescribedGroup) -> set[str]:
    names: set[str] = set()
    if group.topology is not None:
        for subtopology in group.topology.subtopologies or ():
            names.update(subtopology.source_topics, subtopology.repartition_sink_topics)
            names.update(topic.name for topic in subtopology.repartition_source_topics)
            names.update(topic.name for topic in subtopology.state_changelog_topics)
    return names

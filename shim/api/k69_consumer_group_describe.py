"""ConsumerGroupDescribe (key 69), versions 0-1.

Returns epochs, members, and current and target assignments of groups of the consumer protocol (KIP-848);
GROUP_ID_NOT_FOUND for any other group. v1 shows which members use the classic protocol.
"""

from __future__ import annotations

from kafka_shim.api.k68_consumer_group_heartbeat import check_protocol
from kafka_shim.authorization import authorized_operations, hide_groups_by_topic, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.describe import described_consumer
from kafka_shim.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_shim.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.group.coordinator import GroupCoordinator
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 69, 0, 1
REQUEST, RESPONSE = ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
ABANDONABLE = True


def handle(context: Context, request: ConsumerGroupDescribeRequest) -> Steps[ConsumerGroupDescribeResponse]:
    check_protocol(context.broker)
    response = ConsumerGroupDescribeResponse()
    for group_id in request.group_ids:
        try:
            require(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
            group = _described(context.broker.groups, group_id)
        except KafkaError as error:
            group = DescribedGroup(group_id=group_id, error_code=error.code)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
        response.groups.append(group)
        yield
    yield from hide_groups_by_topic(context, response.groups, _topics, _hidden)
    return response


def _hidden(group: DescribedGroup) -> DescribedGroup:
    """What stands for a group with an assigned topic that the client may not describe."""
    return DescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to describe.",
    )


def _topics(group: DescribedGroup) -> set[str]:
    return {
        part.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for part in assignment.topic_partitions
    }


def _described(groups: GroupCoordinator, group_id: str) -> DescribedGroup:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return described_consumer(group_id, groups.find(group_id), groups.image)

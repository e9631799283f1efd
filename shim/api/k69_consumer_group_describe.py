"""ConsumerGroupDescribe (key 69), versions 0-1.

Returns epochs, members, and current and target assignments of groups of the consumer protocol (KIP-848);
GROUP_ID_NOT_FOUND for any other group. v1 shows which members use the classic protocol.
"""

from __future__ import annotations

from kafka_shim.api.described_groups import describe_groups
from kafka_shim.api.k68_consumer_group_heartbeat import check_protocol
from kafka_shim.group.describe import described_consumer
from kafka_shim.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_shim.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 69, 0, 1
REQUEST, RESPONSE = ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
ABANDONABLE = True


def handle(context: Context, request: ConsumerGroupDescribeRequest) -> Steps[ConsumerGroupDescribeResponse]:
    check_protocol(context.broker)
    groups = yield from describe_groups(context, request, DescribedGroup, described_consumer, _topics)
    return ConsumerGroupDescribeResponse(groups=groups)


def _topics(group: DescribedGroup) -> set[str]:
    return {
        part.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for part in assignment.topic_partitions
    }

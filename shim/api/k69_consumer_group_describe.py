"""ConsumerGroupDescribe (key 69), versions 0-1.

Epochs, members, and current and target assignments of groups of the consumer protocol (KIP-848); GROUP_ID_NOT_FOUND for
any other. v1 tells which members use the classic protocol.
"""

from __future__ import annotations

from kafka_shim.api.k15_describe_groups import GROUP_OPERATIONS
from kafka_shim.api.k68_consumer_group_heartbeat import check_protocol
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.describe import described_consumer
from kafka_shim.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_shim.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Context
    from kafka_shim.group.coordinator import GroupCoordinator

KEY, MIN, MAX = 69, 0, 1
REQUEST, RESPONSE = ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


def handle(context: Context, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    check_protocol(context.broker)
    response = ConsumerGroupDescribeResponse()
    for group_id in request.group_ids:
        try:
            group = _described(context.broker.groups, group_id)
        except KafkaError as error:
            group = DescribedGroup(group_id=group_id, error_code=error.code)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
        response.groups.append(group)
    return response


def _described(groups: GroupCoordinator, group_id: str) -> DescribedGroup:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return described_consumer(group_id, groups.find(group_id), groups.image)

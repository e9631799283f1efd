"""ShareGroupDescribe (key 77), version 1.

Returns epochs, members and assignments of share groups (KIP-932); GROUP_ID_NOT_FOUND for any other group.
"""

from __future__ import annotations

from kafka_shim.api.described_groups import describe_groups
from kafka_shim.api.k76_share_group_heartbeat import check_protocol
from kafka_shim.group.share_describe import described_share
from kafka_shim.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from kafka_shim.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 77, 1, 1
REQUEST, RESPONSE = ShareGroupDescribeRequest, ShareGroupDescribeResponse
ABANDONABLE = True


def handle(context: Context, request: ShareGroupDescribeRequest) -> Steps[ShareGroupDescribeResponse]:
    check_protocol(context.broker)
    groups = yield from describe_groups(context, request, DescribedGroup, described_share, _topics)
    return ShareGroupDescribeResponse(groups=groups)


def _topics(group: DescribedGroup) -> set[str]:
    return {part.topic_name for member in group.members for part in member.assignment.topic_partitions}

"""DescribeGroups (key 15), versions 0-6.

Returns state and members of classic groups; members of a stable group have metadata and assignment. An unknown group,
or one of another kind, is Dead; from v6 with GROUP_ID_NOT_FOUND and a message (KIP-1043). v3 authorized operations
(KIP-430). v4 static members. v5 is flexible.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_operations, require
from kafka_shim.errors import KafkaError
from kafka_shim.group.describe import described_classic
from kafka_shim.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kafka_shim.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 15, 0, 6
REQUEST, RESPONSE = DescribeGroupsRequest, DescribeGroupsResponse
ABANDONABLE = True

FIRST_WITH_OPERATIONS = 3


def handle(context: Context, request: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    response = DescribeGroupsResponse()
    shows_operations = context.api_version >= FIRST_WITH_OPERATIONS and request.include_authorized_operations
    for group_id in request.groups:
        group = _described(context, group_id)
        if shows_operations and not group.error_code:
            group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
        response.groups.append(group)
        yield
    return response


def _described(context: Context, group_id: str) -> DescribedGroup:
    try:
        require(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        group = context.broker.groups.find(group_id)
    except KafkaError as error:  # not authorised, or the group is being loaded
        return DescribedGroup(group_id=group_id, error_code=error.code)
    return described_classic(group_id, group, context.api_version)

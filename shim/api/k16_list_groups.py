"""ListGroups (key 16), versions 0-5.

Returns all groups with their protocol type. v3 is flexible. v4 group states and a filter by state (KIP-518). v5 group
types and a filter by type (KIP-848).
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps, may_on_cluster
from kafka_shim.group.describe import listed
from kafka_shim.protocol.messages.list_groups_request import ListGroupsRequest
from kafka_shim.protocol.messages.list_groups_response import ListGroupsResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 16, 0, 5
REQUEST, RESPONSE = ListGroupsRequest, ListGroupsResponse
ABANDONABLE = True


def handle(context: Context, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    groups = yield from context.broker.groups.all_groups()
    if not may_on_cluster(context, AclOperation.DESCRIBE, logs_denied=False):
        names = (group.group_id for group in groups)
        described = yield from authorized_in_steps(
            context, AclOperation.DESCRIBE, ResourceType.GROUP, names, logs_denied=False
        )
        groups = [group for group in groups if group.group_id in described]
    answers = yield from listed(groups, request.states_filter, request.types_filter)
    return ListGroupsResponse(groups=answers)

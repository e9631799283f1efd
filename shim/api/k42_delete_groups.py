"""DeleteGroups (key 42), versions 0-2.

Removes groups without members, and their offsets. Each group has its own error code: GROUP_ID_NOT_FOUND,
NON_EMPTY_GROUP. v2 is flexible.
"""

from __future__ import annotations

import asyncio

from kafka_shim.authorization import require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kafka_shim.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush

KEY, MIN, MAX = 42, 0, 2
REQUEST, RESPONSE = DeleteGroupsRequest, DeleteGroupsResponse

GROUPS_PER_TURN = 256


async def handle(context: Context, request: DeleteGroupsRequest) -> Outcome[DeleteGroupsResponse]:
    response = DeleteGroupsResponse()
    flushes: list[Flush] = []
    for number, group_id in enumerate(dict.fromkeys(request.groups_names), 1):
        if not number % GROUPS_PER_TURN:
            await asyncio.sleep(0)
        code = ErrorCode.NONE
        try:
            require(context, AclOperation.DELETE, ResourceType.GROUP, group_id)
            flushes += await context.broker.groups.delete_group(group_id)
        except KafkaError as error:
            code = error.code
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=code))
    return Outcome(response, flushes)

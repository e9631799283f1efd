"""SyncGroup (key 14), versions 0-5.

Returns a classic member's assignment. The leader's request carries the assignments of all members; the other members'
requests wait for it. v3 static members (KIP-345). v4 is flexible. v5 must name the protocol and its type (KIP-559),
else INCONSISTENT_GROUP_PROTOCOL.
"""

from __future__ import annotations

from kafka_shim.authorization import require
from kafka_shim.cext.plain_syncs import PlainSync
from kafka_shim.errors import ErrorCode
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.group.requests import sync_failure
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest
from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse
from kafka_shim.security.acl import GROUP, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 14, 0, 5
REQUEST, RESPONSE = SyncGroupRequest, SyncGroupResponse

FIRST_WITH_PROTOCOL = 5


def handle(context: Context, request: SyncGroupRequest) -> Outcome[SyncGroupResponse] | DelayedResponse:
    context.note_member(request.group_id, request.member_id)
    if context.api_version >= FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return Outcome(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    require(context, READ, GROUP, request.group_id)
    return context.broker.groups.classic.sync_group(request)


PLAIN = PlainSync(DelayedResponse, sync_failure)

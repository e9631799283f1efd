"""LeaveGroup (key 13), versions 0-5.

Removes members; since v3 several at once, also by instance id (KIP-345). Each has its own error code. Up to v2 there is
one member, and its code is at the top level. v4 is flexible. v5 carries a reason (KIP-800), which is not used.
"""

from __future__ import annotations

from kafka_shim.authorization import require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_shim.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kafka_shim.security.acl import GROUP, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.outcome import Outcome

KEY, MIN, MAX = 13, 0, 5
REQUEST, RESPONSE = LeaveGroupRequest, LeaveGroupResponse

FIRST_WITH_MEMBERS = 3


def handle(context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse | Outcome[LeaveGroupResponse]:
    require(context, READ, GROUP, request.group_id)
    has_members = context.api_version >= FIRST_WITH_MEMBERS
    if not has_members:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        outcome = context.broker.groups.classic.leave_group(request)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID or not has_members:
            raise
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error.code
                )
                for each in request.members
            ]
        )
    if not has_members and not outcome.response.error_code:
        outcome.response = LeaveGroupResponse(error_code=outcome.response.members[0].error_code)
    return outcome

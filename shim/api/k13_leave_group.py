"""LeaveGroup (key 13), versions 0-5.

Removes members; since v3 several at once, also by instance id (KIP-345). Each has its own error code. Up to v2 there is
one member, and its code is at the top level. v4 is flexible. v5 carries a reason (KIP-800), which is not used.
"""

from __future__ import annotations

from kafka_shim.authorization import require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_shim.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kafka_shim.security.acl import GROUP, READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 13, 0, 5
REQUEST, RESPONSE = LeaveGroupRequest, LeaveGroupResponse

FIRST_WITH_MEMBERS = 3
# More members than these leave so many at a time, each part as a request of its own (docs/adr/0045-large-requests.md).
MEMBERS_PER_STEP = 256


def handle(
    context: Context, request: LeaveGroupRequest
) -> LeaveGroupResponse | Outcome[LeaveGroupResponse] | Steps[Outcome[LeaveGroupResponse]]:
    require(context, READ, GROUP, request.group_id)
    if context.api_version < FIRST_WITH_MEMBERS:
        request.members = [MemberIdentity(member_id=request.member_id)]
        outcome = context.broker.groups.classic.leave_group(request)
        if not outcome.response.error_code:
            outcome.response = LeaveGroupResponse(error_code=outcome.response.members[0].error_code)
        return outcome
    return _leave(context, request) if len(request.members) <= MEMBERS_PER_STEP else _leave_in_steps(context, request)


def _leave(context: Context, request: LeaveGroupRequest) -> Outcome[LeaveGroupResponse]:
    try:
        return context.broker.groups.classic.leave_group(request)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        members = [
            MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error.code)
            for each in request.members
        ]
        return Outcome(LeaveGroupResponse(members=members))


def _leave_in_steps(context: Context, request: LeaveGroupRequest) -> Steps[Outcome[LeaveGroupResponse]]:
    response = LeaveGroupResponse()
    flushes: list[Flush] = []
    for start in range(0, len(request.members), MEMBERS_PER_STEP):
        part = LeaveGroupRequest(group_id=request.group_id, members=request.members[start : start + MEMBERS_PER_STEP])
        outcome = _leave(context, part)
        if outcome.response.error_code:
            return outcome
        response.members += outcome.response.members
        flushes += outcome.flushes
        yield
    return Outcome(response, flushes)

"""LeaveGroup (key 13), versions 0-5.

Removes members; since v3 several at once, also by instance id (KIP-345). Each has its own error code. Up to v2 there is
one member, and its code is at the top level. v4 is flexible. v5 carries a reason (KIP-800), which is not used.
"""

from __future__ import annotations

import logging

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

logger = logging.getLogger("kafka_shim.request")

KEY, MIN, MAX = 13, 0, 5
REQUEST, RESPONSE = LeaveGroupRequest, LeaveGroupResponse

FIRST_WITH_MEMBERS = 3
# More members than these leave so many at a time, each part as a request of its own (docs/adr/0045-large-requests.md).
# If one fails, those after it have its error each: who has left before stays away.
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
        return Outcome(LeaveGroupResponse(members=_refused(request.members, error.code)))


def _refused(members: list[MemberIdentity], code: int) -> list[MemberResponse]:
    return [
        MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code)
        for each in members
    ]


def _leave_in_steps(context: Context, request: LeaveGroupRequest) -> Steps[Outcome[LeaveGroupResponse]]:
    order, again = yield from context.broker.groups.classic.leaving_order(request, MEMBERS_PER_STEP)
    answers: dict[int, MemberResponse] = {}
    flushes: list[Flush] = []
    code: int = ErrorCode.NONE
    for start in range(0, len(order), MEMBERS_PER_STEP):
        places = order[start : start + MEMBERS_PER_STEP]
        members = [request.members[place] for place in places]
        if not code:
            try:
                outcome = _leave(context, LeaveGroupRequest(group_id=request.group_id, members=members))
            except Exception as error:
                if not start:
                    raise
                code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
                if not isinstance(error, KafkaError):
                    logger.exception("LeaveGroup of %r ends behind its first %d members", request.group_id, start)
            else:
                code = outcome.response.error_code
                if code and not start:
                    return outcome
                flushes += outcome.flushes
        answers.update(zip(places, _refused(members, code) if code else outcome.response.members, strict=True))
        yield
    for place, first in again.items():
        answers[place] = _refused([request.members[place]], answers[first].error_code)[0]
        if place % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
            yield
    return Outcome(LeaveGroupResponse(members=[answers[place] for place in range(len(answers))]), flushes)

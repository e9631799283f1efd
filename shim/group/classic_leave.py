"""LeaveGroup of the classic protocol, batched since v3 (KIP-345) (key 13)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.classic_join import complete_if_all_joined, rebalance_or_complete
from kafka_shim.group.classic_state import COMPLETING, DEAD, PREPARING, STABLE
from kafka_shim.group.classic_sync import NONE, remove_member
from kafka_shim.group.decision import SESSION, Decision
from kafka_shim.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.config import BrokerConfig
    from kafka_shim.group.classic import ClassicGroup
    from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity


def leave(group: ClassicGroup, request: LeaveGroupRequest, config: BrokerConfig, now_ms: int) -> Decision:
    """Handle one LeaveGroup. Each member has its own error code in the response."""
    decision = Decision()
    decision.replayed = False
    if group.state is DEAD:
        decision.response = LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return decision

    def refusal(identity: MemberIdentity) -> int:
        """Have a member leave that is not only forgotten. Returns its error code."""
        try:
            _leave_one(group, identity, decision)
        except KafkaError as error:
            return error.code
        return NONE

    members, has_left = group.forget_all(
        group.group_id, SESSION, MemberResponse, request.members, refusal, decision.timers
    )
    decision.response = LeaveGroupResponse(members=members)
    if has_left:
        if group.state in (STABLE, COMPLETING):
            rebalance_or_complete(group, config, decision, now_ms)
        elif group.state is PREPARING:
            complete_if_all_joined(group, decision, now_ms)
    return decision


def _leave_one(group: ClassicGroup, identity: MemberIdentity, decision: Decision) -> None:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id == "":
        # An administrator removes a static member by its instance id.
        member_id = group.static_members.get(instance_id, "") if instance_id is not None else ""
        if not member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        instance_id = None
    remove_member(group, group.check_member(member_id, instance_id), decision)

"""SyncGroup and Heartbeat of the classic protocol, and the timers of sessions and of the sync phase (keys 14, 12).

A follower's SyncGroup waits until the leader's brings the assignment. The assignment is recorded before any member gets
it; if that fails, the members join again.
"""

from __future__ import annotations

from kafka_shim.cext.classic_members import assignments_of
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.classic_join import complete, prepare_rebalance, rebalance_or_complete
from kafka_shim.group.classic_state import COMPLETING, DEAD, PREPARING, STABLE
from kafka_shim.group.decision import SESSION, SYNC, Decision
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.config import BrokerConfig
    from kafka_shim.group.classic import ClassicGroup
    from kafka_shim.group.classic_member import ClassicMember
    from kafka_shim.group.decision import Heartbeat, Token
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest

NONE = ErrorCode.NONE
# A record of more bytes is refused before it is made, if no batch may hold it.
LARGE_RECORD_BYTES = 1 << 20


def sync(
    group: ClassicGroup, request: SyncGroupRequest, token: Token, image: CoordinatorMetadataImage, now_ms: int
) -> Decision:
    """Handle one SyncGroup. Raises MESSAGE_TOO_LARGE for an assignment of the leader that no batch may hold."""
    decision = Decision()
    decision.replayed = False
    try:
        member = _check_sync(group, request)
    except KafkaError as error:
        decision.reply(token, SyncGroupResponse(error_code=error.code))
        return decision
    if group.state is PREPARING:
        decision.reply(token, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    elif group.state is STABLE:
        _synced(group, member, decision)
        decision.reply(token, _assigned(group, member.assignment))
    elif group.leader_id == member.member_id:
        given = assignments_of(request.assignments)
        _check_size(group, given, image)
        _assign(group, given, request.member_id, token, decision, now_ms)
    else:
        if member.awaiting_sync is not None:
            decision.reply(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = token
        _synced(group, member, decision)
    return decision


def waits(group: ClassicGroup, request: SyncGroupRequest, token: Token) -> bool:
    """Have a follower wait for the leader's assignment, if that is all that `sync` would do. Returns False, and has
    changed nothing, if it is not."""
    return group.wait_to_sync(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        token,
    )


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ClassicMember:
    if group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return member


def _differs(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known


def _synced(group: ClassicGroup, member: ClassicMember, decision: Decision) -> None:
    group.pending_syncs.discard(member.member_id)
    if not group.pending_syncs:
        decision.cancel(group.group_id, SYNC)


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)


def _check_size(group: ClassicGroup, given: dict[str, bytes], image: CoordinatorMetadataImage) -> None:
    """Raises MESSAGE_TOO_LARGE, before time is spent on it, if no batch may hold the group's record. A smaller one is
    left to the append: it takes little time, and nearly all are."""
    if sum(map(len, given.values())) + group.metadata_bytes <= LARGE_RECORD_BYTES:
        return
    members = group.members
    assigned_bytes = sum(len(assignment) for member_id, assignment in given.items() if member_id in members)
    least_bytes = assigned_bytes + sum(len(member.metadata(group.protocol)) for member in members.values())
    if not image.may_hold(least_bytes):
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record of group {group.group_id} takes at least {least_bytes} bytes, more than a batch may have.",
        )


def _assign(
    group: ClassicGroup, given: dict[str, bytes], leader_id: str, token: Token, decision: Decision, now_ms: int
) -> None:
    """Handle the leader's SyncGroup: record its assignments, then complete all waiting requests. A member without an
    assignment gets an empty one."""
    decision.records.append(group.record(given))
    synced = group.answer_syncs(
        group.group_id,
        SESSION,
        SyncGroupResponse,
        given,
        leader_id,
        token,
        decision.replies,
        decision.timers,
    )
    if all(member_id == leader_id for member_id in group.pending_syncs):
        decision.cancel(group.group_id, SYNC)

    def assign() -> None:
        group.keep_assignments(given, synced)
        group.pending_syncs.discard(leader_id)
        group.enter(STABLE, now_ms)

    decision.changes.append(assign)


def assignment_refused(group: ClassicGroup, request: SyncGroupRequest, code: ErrorCode, now_ms: int) -> Decision:
    """Start a rebalance after the record of the leader's assignment could not be written: who waits for it gets the
    error. Their sessions start again, because one that ends while its member waits is passed over."""
    decision = Decision()
    decision.replayed = False
    # An answer may have let in a request that started one.
    if group.state is COMPLETING and group.generation_id == request.generation_id:
        for member in group.members.values():
            decision.reply(member.awaiting_sync, SyncGroupResponse(error_code=code))
        leader = group.members[request.member_id]
        decision.schedule(group.group_id, SESSION, leader.member_id, leader.session_timeout_ms)
        prepare_rebalance(group, None, decision, now_ms)
    return decision


def heartbeat(group: ClassicGroup, request: HeartbeatRequest) -> Heartbeat:
    """Handle one Heartbeat. Raises the errors of the table of states."""
    if group.state is DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    code = ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else NONE
    return code, ((SESSION, member.session_timeout_ms, False),)


# --- time


def session_over(group: ClassicGroup, member_id: str, config: BrokerConfig, now_ms: int) -> Decision:
    """Handle the timer SESSION of a member or of a pending member id: remove it, unless a delayed request counts as a
    heartbeat."""
    decision = Decision()
    decision.replayed = False
    if member_id in group.pending_joins:
        group.remove(member_id)
        if group.state is PREPARING and group.has_all_joined:
            complete(group, decision, now_ms)
        return decision
    member = group.members.get(member_id)
    if member is None or member.is_waiting:
        return decision
    remove_member(group, member, decision)
    if group.state in (STABLE, COMPLETING):
        rebalance_or_complete(group, config, decision, now_ms)
    elif group.state is PREPARING and group.has_all_joined:
        complete(group, decision, now_ms)
    return decision


def remove_member(group: ClassicGroup, member: ClassicMember, decision: Decision) -> None:
    """Remove a member. Its waiting requests get UNKNOWN_MEMBER_ID."""
    decision.cancel(group.group_id, SESSION, member.member_id)
    if member.awaiting_join is not None:
        refusal = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, protocol_name=None)
        decision.reply(member.awaiting_join, refusal)
    if member.awaiting_sync is not None:
        decision.reply(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def sync_phase_over(group: ClassicGroup, now_ms: int) -> Decision:
    """Handle the timer SYNC: remove members that have not sent SyncGroup within the rebalance timeout (KAFKA-12890)."""
    decision = Decision()
    decision.replayed = False
    if group.state not in (COMPLETING, STABLE) or not group.pending_syncs:
        return decision
    for member_id in list(group.pending_syncs):
        group.remove(member_id)
        decision.cancel(group.group_id, SESSION, member_id)
    prepare_rebalance(group, None, decision, now_ms)
    return decision

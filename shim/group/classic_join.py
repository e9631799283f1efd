"""JoinGroup of the classic protocol, and the join phase up to a new generation (key 11).

A new dynamic member first gets its id with MEMBER_ID_REQUIRED (KIP-394, v4) and then joins with it. A static member is
identified by its instance id (KIP-345) and replaces the earlier member with that id. A join waits until all known
members have joined or the rebalance timeout has passed. Then every member gets the new generation, and the leader also
all members' metadata. Each function returns a `Decision`, or adds to one.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.classic_member import ClassicMember, protocols_of, size_of
from kafka_shim.group.classic_state import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from kafka_shim.group.client import Client
from kafka_shim.group.decision import JOIN, SESSION, SYNC, Decision
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.config import BrokerConfig
    from kafka_shim.group.classic import ClassicGroup
    from kafka_shim.group.classic_member import Protocols
    from kafka_shim.group.decision import Token
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import JoinContext
    from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
    from kafka_shim.randomness import Randomness

# How long a member may wait for the response to its first join. Clients that gave up must not stay members for ever.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
# How often a new group without an initial delay looks for members that have their ids, in the time that it waits for
# them (`CoordinatorMetadataImage.gathering_ms`).
GATHERING_STEP_MS = 1
# The limit on pending member ids. An assigned id expires after the session timeout of its request if no join arrives
# with it. At the limit a further id removes the oldest, so that a flood of first joins uses bounded memory.
MAX_PENDING_JOINS = 10_000
# The limit on all members' metadata for all their protocols, in bytes. The part that one generation uses must fit one
# record, 1 MB by default, or the leader's assignment cannot be written. Without the limit, memory would grow as long as
# members keep joining.
MAX_METADATA_BYTES = 64 << 20


def join(group: ClassicGroup, context: JoinContext, *, is_new_group: bool) -> Decision:
    """Handle one JoinGroup. `is_new_group`: the group was created for it, and is recorded even if nothing else is."""
    request, decision, token = context.request, context.decision, context.token
    decision.replayed = False
    if not group.accepts(request.member_id, context.image.config.group_max_size):
        group.remove(request.member_id)
        decision.reply(token, _refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
    elif not group.has_room(request.member_id, size_of(context.protocols), MAX_METADATA_BYTES):
        decision.reply(token, _refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
    elif group.state is DEAD:
        decision.reply(token, _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id))
    elif not group.supports(request.protocol_type, context.protocols):
        decision.reply(token, _refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
    elif request.member_id == "":
        _join_as_new(group, context)
    else:
        _join_as_known(group, context)
    if is_new_group and not decision.records:
        decision.records.append(group.empty_record())
    return decision


def _refusal(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def _new_id(name: str, random: Randomness) -> str:
    return f"{name}-{random.java_uuid_text()}"


def _join_as_new(group: ClassicGroup, context: JoinContext) -> None:
    request, decision = context.request, context.decision
    instance_id = request.group_instance_id
    new_id = _new_id(context.client.client_id if instance_id is None else instance_id, context.image.random)
    if instance_id is not None:
        old_id = group.static_members.get(instance_id)
        if old_id is not None:
            _rejoin_static(group, old_id, new_id, context)
            return
    elif context.version >= 4:
        while len(group.pending_joins) >= MAX_PENDING_JOINS:
            oldest = next(iter(group.pending_joins))
            group.remove(oldest)
            decision.cancel(group.group_id, SESSION, oldest)
        group.pending_joins[new_id] = None
        decision.schedule(group.group_id, SESSION, new_id, request.session_timeout_ms)
        decision.reply(context.token, _refusal(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        return
    _add(group, new_id, context)


def _join_as_known(group: ClassicGroup, context: JoinContext) -> None:
    request, decision, token = context.request, context.decision, context.token
    member_id = request.member_id
    if member_id in group.pending_joins:
        if request.group_instance_id is None:
            _add(group, member_id, context)
        else:  # as Kafka, for which that is an illegal state: static members get no id with MEMBER_ID_REQUIRED
            decision.reply(token, _refusal(ErrorCode.UNKNOWN_SERVER_ERROR, ""))
        return
    try:
        member = group.check_member(member_id, request.group_instance_id)
    except KafkaError as error:
        decision.reply(token, _refusal(error.code, member_id))
        return
    protocols = context.protocols
    must_rebalance = (
        group.state is PREPARING
        or member.protocols != protocols
        or (group.state is STABLE and group.leader_id == member_id)
    )
    if group.state is EMPTY:
        decision.reply(token, _refusal(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
    elif must_rebalance:
        _update(group, member, protocols, context)
        rebalance_or_complete(group, context.image.config, decision, context.now_ms)
    else:
        # The member missed the response to this generation's join, or repeats its request.
        with_members = group.state is COMPLETING and group.leader_id == member_id
        decision.reply(token, joined(group, member_id, with_members=with_members))


def _update(group: ClassicGroup, member: ClassicMember, protocols: Protocols, context: JoinContext) -> None:
    request = context.request
    if member.protocols != protocols:
        group.change_protocols(member, protocols)
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
    if member.awaiting_join is not None and member.awaiting_join is not context.token:
        # The same member joins again while its first request still waits, because its connection broke. Nobody reads
        # the first response.
        context.decision.reply(member.awaiting_join, _refusal(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
    group.await_join(member, context.token)


def waits(group: ClassicGroup, request: JoinGroupRequest, client: Client, token: Token, max_size: int) -> bool:
    """Have a member with an id of a group that prepares a rebalance wait for others, if that is all that `join` would
    do, besides the timer of a new member's session. Returns False, and has changed nothing, if it is not."""
    if request.member_id not in group.pending_joins:
        return False
    member = _new_member(request, request.member_id, client, protocols_of(request.protocols))
    return group.wait_to_join(member, request.protocol_type, token, max_size, MAX_METADATA_BYTES)


def _new_member(request: JoinGroupRequest, member_id: str, client: Client, protocols: Protocols) -> ClassicMember:
    return ClassicMember(
        member_id,
        request.group_instance_id,
        client,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        protocols,
    )


def _add(group: ClassicGroup, member_id: str, context: JoinContext) -> None:
    member = _new_member(context.request, member_id, context.client, context.protocols)
    group.admit(member, context.request.protocol_type, context.token)
    context.decision.schedule(group.group_id, SESSION, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(group, context.image.config, context.decision, context.now_ms)


def _rejoin_static(group: ClassicGroup, old_id: str, new_id: str, context: JoinContext) -> None:
    """Handle a static member without a member id: it restarted. In a stable group with the same protocol no rebalance
    starts."""
    request, decision, token, now_ms = context.request, context.decision, context.token, context.now_ms
    old = group.members[old_id]
    was_leader = group.leader_id
    member = ClassicMember(
        new_id,
        old.instance_id,
        # As in Kafka, also if it restarted on another host or has another client id now.
        Client(old.client_id, old.client_host),
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        context.protocols,
        old.assignment,
    )
    decision.cancel(group.group_id, SESSION, old_id)
    decision.schedule(group.group_id, SESSION, new_id, request.session_timeout_ms)
    decision.reply(old.awaiting_join, _refusal(ErrorCode.FENCED_INSTANCE_ID, old_id))
    decision.reply(old.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    group.replace_static(old, member)
    if group.state is STABLE:
        if group.select_protocol() == group.protocol:
            _answer_same_generation(group, member, was_leader, context)
            # The new member id takes effect only with the record of the generation.
            group.replace_static(member, old)
            decision.changes.append(lambda: group.replace_static(old, member))
        else:
            group.await_join(member, token)
            prepare_rebalance(group, None, decision, now_ms)
        return
    group.await_join(member, token)
    if group.state is COMPLETING:
        prepare_rebalance(group, None, decision, now_ms)
    else:
        complete_if_all_joined(group, decision, now_ms)


def _answer_same_generation(
    group: ClassicGroup, member: ClassicMember, was_leader: str | None, context: JoinContext
) -> None:
    context.decision.records.append(group.record({each.member_id: each.assignment for each in group.members.values()}))
    response = joined(group, member.member_id, with_members=False)
    if context.version >= 9:
        # KIP-814: the leader gets SkipAssignment, because the current assignment stands.
        is_leader = group.leader_id == member.member_id
        response = joined(group, member.member_id, with_members=is_leader)
        response.skip_assignment = is_leader
    else:
        # An older client gets the previous leader's id. Otherwise it would take itself for the leader and compute a new
        # assignment.
        response.leader = was_leader or ""
    context.decision.reply(context.token, response)


# --- the join phase


def rebalance_or_complete(group: ClassicGroup, config: BrokerConfig | None, decision: Decision, now_ms: int) -> None:
    """After a member was added, changed or removed: start a rebalance, or end the current join phase if it can end."""
    if group.can_rebalance:
        prepare_rebalance(group, config, decision, now_ms)
    else:
        complete_if_all_joined(group, decision, now_ms)


def prepare_rebalance(group: ClassicGroup, config: BrokerConfig | None, decision: Decision, now_ms: int) -> None:
    """Start a join phase. `config` may be None if the group is not empty."""
    if group.state is COMPLETING:
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                decision.reply(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
                member.awaiting_sync = None
                decision.schedule(group.group_id, SESSION, member.member_id, member.session_timeout_ms)
    group.pending_syncs.clear()
    decision.cancel(group.group_id, SYNC)
    is_initial = group.state is EMPTY
    group.enter(PREPARING, now_ms)
    if is_initial:
        assert config is not None
        group.gathering_ends_ms = now_ms + group.rebalance_timeout_ms
        decision.schedule(group.group_id, JOIN, "", config.group_initial_rebalance_delay_ms)
    elif group.has_all_joined:
        complete(group, decision, now_ms)
    else:
        decision.schedule(group.group_id, JOIN, "", group.rebalance_timeout_ms)


def complete_if_all_joined(group: ClassicGroup, decision: Decision, now_ms: int) -> None:
    """End the join phase if all members have joined. The initial delay is never shortened."""
    if group.state is PREPARING and group.previous_state is not EMPTY and group.has_all_joined:
        complete(group, decision, now_ms)


def complete(group: ClassicGroup, decision: Decision, now_ms: int) -> None:
    """End the join phase: remove dynamic members that did not join, start the generation, and complete all waiting
    joins."""
    group_id = group.group_id
    decision.cancel(group_id, JOIN)
    for member_id in group.missing:
        group.remove(member_id)
        decision.cancel(group_id, SESSION, member_id)
    if group.members and not group.elect_joined_leader():
        # Only static members are left, and none of them has joined. They keep their places, and the join phase goes on.
        decision.schedule(group_id, JOIN, "", group.rebalance_timeout_ms)
        return
    if not group.members:
        decision.records.append(group.empty_generation_record(now_ms))
        decision.changes.append(lambda: group.start_generation(now_ms))
        # The timer JOIN retries if the record cannot be written, because perhaps no other event ends this join phase.
        decision.retries.append((group_id, JOIN, ""))
        return
    group.start_generation(now_ms)
    group.end_joins(group_id, SESSION, JoinGroupResponse, JoinGroupResponseMember, decision.replies, decision.timers)
    group.pending_syncs.update(group.members)
    decision.schedule(group_id, SYNC, "", group.rebalance_timeout_ms)


def joined(group: ClassicGroup, member_id: str, *, with_members: bool) -> JoinGroupResponse:
    """Returns the JoinGroup response for this generation. The leader's lists all members' metadata."""
    rows = group.rows_of_leader(JoinGroupResponseMember) if with_members else []
    response: JoinGroupResponse = group.joined(JoinGroupResponse, member_id, rows)
    return response


# --- time


def join_phase_over(group: ClassicGroup, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
    """Handle the timer JOIN: the rebalance timeout, or the initial delay, which is extended as long as members keep
    joining, at most to the rebalance timeout of the first. A delay of 0 is a turn of the event loop."""
    decision = Decision()
    decision.replayed = False
    if group.state is not PREPARING:
        return decision
    if group.previous_state is EMPTY:
        delay_ms = image.config.group_initial_rebalance_delay_ms
        waited_ms = now_ms - group.state_ms
        remaining_ms = group.gathering_ends_ms - now_ms
        was_added, group.new_member_added = group.new_member_added, False
        if was_added and remaining_ms > 0:
            decision.schedule(group.group_id, JOIN, "", min(delay_ms, remaining_ms))
            return decision
        if delay_ms == 0 and group.pending_joins and 0 <= waited_ms < image.gathering_ms:
            decision.schedule(group.group_id, JOIN, "", GATHERING_STEP_MS)
            return decision
    complete(group, decision, now_ms)
    return decision

"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in a consumer group (KIP-848's online migration).

The coordinator assigns partitions for them too. Their generation is the member epoch, and there is no leader. The
heartbeat response REBALANCE_IN_PROGRESS makes them rejoin when they must revoke or can get partitions.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import consumer_protocol
from kafka_shim.group.classic_member import protocols_of
from kafka_shim.group.consumer_heartbeat import bump_epoch, known_static, replace_static, step
from kafka_shim.group.consumer_leave import fence_members
from kafka_shim.group.consumer_member import UNRELEASED, UNREVOKED, ConsumerMember
from kafka_shim.group.consumer_regex import UNCHANGED, update_regex
from kafka_shim.group.consumer_target import update_target
from kafka_shim.group.decision import JOIN, SESSION, SYNC, Decision
from kafka_shim.group.migration import by_name, can_downgrade_for, classic_metadata, downgrade
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.classic_member import Protocols
    from kafka_shim.group.consumer import ConsumerGroup
    from kafka_shim.group.consumer_member import Partitions
    from kafka_shim.group.decision import Heartbeat
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import JoinContext
    from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
    from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest


def join(group: ConsumerGroup, context: JoinContext) -> Decision:
    """Handle one JoinGroup. Raises the error of the response."""
    request, image, decision = context.request, context.image, context.decision
    config = image.config
    if config.group_consumer_migration_policy.lower() == "disabled":
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "group migration is disabled")
    is_unknown = request.member_id == ""
    member_id = request.member_id or image.random.uuid_text()
    if len(group.members) >= config.group_consumer_max_size and member_id not in group.members:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    protocols = protocols_of(request.protocols)
    if not protocols or not group.supports_classic(request.protocol_type, [name for name, _ in protocols]):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if is_unknown and request.group_instance_id is None and context.version >= 4:
        response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None)
        decision.reply(context.token, response)
        return decision
    if request.group_instance_id is None:
        member = group.members.get(member_id) or ConsumerMember(member_id)
    else:
        member = _static(group, member_id, request.group_instance_id, is_unknown, decision)
    replaced = group.static_member(request.group_instance_id)
    goes_back = replaced is not None and can_downgrade_for(group, replaced, config)
    try:
        subscription = consumer_protocol.read_subscription(protocols[0][1])
    except consumer_protocol.ConsumerProtocolError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"malformed subscription: {error}") from error
    owned = _owned(subscription, image)
    updated = _updated(member, context, subscription, protocols)
    if updated != member or member_id not in group.members:
        decision.records.append(updated.metadata_record(group.group_id))
    changed = updated.subscribed_topics != member.subscribed_topics
    changed = update_regex(group, member, updated, context) != UNCHANGED or changed
    epoch, is_homogeneous = bump_epoch(group, member, updated, changed, context)
    if goes_back:
        is_stale = group.assignment_epoch < epoch
        if not is_stale:
            target = (group.assignment_epoch, group.target_of(updated))
            updated = step(group, updated, target, changed, owned, context)
        downgrade(group, (), updated, image, decision, context.now_ms, rebalance=is_stale)
    else:
        target = update_target(group, epoch, member, updated, is_homogeneous, context)
        updated = step(group, updated, target, changed, owned, context)
        decision.cancel(group.group_id, JOIN, member_id)
        decision.schedule(group.group_id, SESSION, member_id, request.session_timeout_ms)
        decision.schedule(group.group_id, SYNC, member_id, request.rebalance_timeout_ms)
    decision.reply(
        context.token,
        JoinGroupResponse(
            member_id=member_id,
            generation_id=updated.member_epoch,
            protocol_type=consumer_protocol.PROTOCOL_TYPE,
            protocol_name=protocols[0][0],
        ),
    )
    return decision


def _updated(
    member: ConsumerMember,
    context: JoinContext,
    subscription: consumer_protocol.Subscription,
    protocols: Protocols,
) -> ConsumerMember:
    """Returns the member as its JoinGroup has it."""
    request, client = context.request, context.client
    return member.copy(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topics=frozenset(subscription.topics),
        subscribed_regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=classic_metadata(request.session_timeout_ms, protocols),
    )


def _owned(subscription: consumer_protocol.Subscription, image: CoordinatorMetadataImage) -> Partitions:
    topics = image.metadata.topics
    return {topics[name].topic_id: set(partitions) for name, partitions in subscription.owned.items() if name in topics}


def _static(
    group: ConsumerGroup, member_id: str, instance_id: str, is_unknown: bool, decision: Decision
) -> ConsumerMember:
    if not is_unknown:
        return known_static(group, member_id, instance_id)
    current = group.static_member(instance_id)
    if current is None:
        return ConsumerMember(member_id)
    return replace_static(group, current, member_id, decision)


def _check(group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> ConsumerMember:
    """Returns the classic member that sends a request."""
    member = group.member(member_id) if instance_id is None else known_static(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    if member.member_epoch != generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member


def sync(group: ConsumerGroup, request: SyncGroupRequest, image: CoordinatorMetadataImage) -> Decision:
    """Handle one SyncGroup, which never waits. Raises the error of the response."""
    decision = Decision()
    member = _check(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    name, metadata = member.classic_protocol()
    is_consumer = request.protocol_type in (None, consumer_protocol.PROTOCOL_TYPE)
    if not is_consumer or request.protocol_name not in (None, name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = member.member_id
    if group.assignment_epoch > member.member_epoch and member.state != UNREVOKED:
        # Start this timer even if the sync fails: a member that never rejoins must not hold up the others.
        decision.schedule_if_absent(group.group_id, JOIN, member_id, member.rebalance_timeout_ms)
        decision.response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return decision
    decision.cancel(group.group_id, SYNC, member_id)
    decision.schedule(group.group_id, SESSION, member_id, member.classic.session_timeout_ms)
    partitions = by_name(member.assigned, image)
    decision.response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=consumer_protocol.write_assignment(partitions, consumer_protocol.read_version(bytes(metadata))),
    )
    return decision


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest) -> Heartbeat:
    """Handle one Heartbeat. Raises the error of the response."""
    member = _check(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    session = (SESSION, member.classic.session_timeout_ms, False)
    if (
        member.member_epoch < group.assignment_epoch
        or member.state == UNREVOKED
        or (member.state == UNRELEASED and not group.waits_for_others(member))
    ):
        return ErrorCode.REBALANCE_IN_PROGRESS, (session, (JOIN, member.rebalance_timeout_ms, True))
    return ErrorCode.NONE, (session,)


def leave(group: ConsumerGroup, request: LeaveGroupRequest, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
    """Handle one LeaveGroup, which removes members of either protocol."""
    decision = Decision()
    leaving: dict[str, ConsumerMember] = {}
    answers = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            member = _leaving(group, identity)
            leaving[member.member_id] = member
        except KafkaError as error:
            code = error.code
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    fence_members(group, list(leaving.values()), image, decision, now_ms)
    decision.response = LeaveGroupResponse(members=answers)
    return decision


def leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember | None:
    """Returns the member that this one of a LeaveGroup is, or None if it is refused."""
    try:
        return _leaving(group, identity)
    except KafkaError:
        return None


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    if identity.member_id:
        return known_static(group, identity.member_id, identity.group_instance_id)
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member

"""ConsumerGroupHeartbeat (KIP-848): join, stay, leave (key 68). The table of states is in `consumer`.

One heartbeat joins or checks the member, records a changed subscription, bumps the group epoch, computes a target
assignment if one is due, and moves the member one step towards it.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.consumer_leave import fence_members
from kafka_shim.group.consumer_member import LEAVE_EPOCH, STABLE, STATIC_LEAVE_EPOCH, UNREVOKED, ConsumerMember
from kafka_shim.group.consumer_reconcile import reconcile
from kafka_shim.group.consumer_regex import CHANGED_AND_RESOLVED, UNCHANGED, update_regex
from kafka_shim.group.consumer_target import Subscriptions, refresh_epoch, update_target
from kafka_shim.group.decision import REBALANCE, SESSION, Decision
from kafka_shim.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.client import Client
    from kafka_shim.group.consumer import ConsumerGroup
    from kafka_shim.group.consumer_member import Epochs, Partitions
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import RequestContext
    from kafka_shim.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]) -> None:
    """Check what does not depend on the group. Raises INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if (
        epoch > 0
        and request.instance_id is None
        and request.rack_id is None
        and request.server_assignor is None
        and request.member_id.strip()
        and request.group_id.strip()
    ):
        return  # as nearly all, after which the rest would ask in vain
    # From v1 the client generates its member id, so that a lost response cannot leave an orphaned member (KIP-1082).
    if version >= 1 or epoch > 0 or epoch == LEAVE_EPOCH:
        _refuse_blank(request.member_id, "MemberId")
    _refuse_blank(request.group_id, "GroupId")
    if request.instance_id is not None:
        _refuse_blank(request.instance_id, "InstanceId")
    if request.rack_id is not None:
        _refuse_blank(request.rack_id, "RackId")
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _refuse_blank(value: str, name: str) -> None:
    if not value.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def says_nothing_new(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int) -> bool:
    """Returns whether the member has only to be kept alive, as by nearly all heartbeats: it is where the group is, and
    neither it nor the topics changed. `heartbeat` then decides to write nothing and to answer with its epoch."""
    member = group.members.get(request.member_id)
    return (
        member is not None
        and request.instance_id is None
        and request.topic_partitions is None
        and _updated(member, request, client) is member
        and _is_settled(group, member, request.member_epoch, now_ms)
    )


def stays(
    group: ConsumerGroup, member_id: str, member_epoch: int, client_id: str, client_host: str, now_ms: int
) -> bool:
    """As `says_nothing_new`, of a request that has only these fields."""
    member = group.members.get(member_id)
    return (
        member is not None
        and member.client_id == client_id
        and member.client_host == client_host
        and member.classic is None
        and _is_settled(group, member, member_epoch, now_ms)
    )


def _is_settled(group: ConsumerGroup, member: ConsumerMember, member_epoch: int, now_ms: int) -> bool:
    return (
        0 < member_epoch == member.member_epoch == group.assignment_epoch >= group.group_epoch
        and member.state == STABLE
        and not group.regexes
        and not group.needs_refresh(now_ms)
    )


def still_there(request: ConsumerGroupHeartbeatRequest, interval_ms: int) -> ConsumerGroupHeartbeatResponse:
    """Returns the response to a heartbeat that says nothing new."""
    return ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=interval_ms
    )


def heartbeat(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> None:
    """Add the records and the response of a heartbeat that does not leave to the decision, which may hold those that
    created the group for it. Raises KafkaError as Kafka refuses it, GROUP_MAX_SIZE_REACHED for one member too many."""
    image, decision = context.image, context.decision
    group_id = group.group_id
    joins = request.member_epoch == 0
    member_id = request.member_id
    max_size = image.config.group_consumer_max_size
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )
    member_id = member_id or image.random.uuid_text()
    owned = _owned(request)
    if request.instance_id is None:
        member = group.members.get(member_id) if joins else group.member(member_id)
        member = member or ConsumerMember(member_id)
        check_epoch(member, request.member_epoch, owned)
    else:
        member = _static_member(group, member_id, request, owned, decision)
    updated = _updated(member, request, context.client)
    if request.subscribed_topic_names is not None:
        image.check_names(updated.subscribed_topics)
    topics_changed = updated.subscribed_topics != member.subscribed_topics
    if updated != member or member_id not in group.members:
        decision.records.append(updated.metadata_record(group_id))
    regex_status = update_regex(group, member, updated, context)
    # The group epoch and the target, and the member's next step.
    must_bump = topics_changed or regex_status == CHANGED_AND_RESOLVED
    epoch, is_homogeneous = bump_epoch(group, member, updated, must_bump, context)
    target = update_target(group, epoch, member, updated, is_homogeneous, context)
    updated = step(group, updated, target, topics_changed or regex_status != UNCHANGED, owned, context)
    decision.schedule(group_id, SESSION, member_id, image.session_timeout_ms(group_id))
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=image.heartbeat_interval_ms(group_id),
    )
    # A full request comes from a member that may have missed a response. It gets its whole assignment again.
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and owned is not None
    )
    if joins or is_full or updated.assigned != member.assigned:
        response.assignment = _assignment(updated.assigned)
    decision.response = response


def _owned(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    owned: Partitions = {}
    for entry in request.topic_partitions:
        owned.setdefault(bytes(entry.topic_id), set()).update(entry.partitions)
    return owned


def _assignment(assigned: Epochs) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(epochs)) for topic_id, epochs in assigned.items()
        ]
    )


def check_epoch(member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
    """Check the member epoch. Epoch 0 rejoins. The previous epoch is a retry if the request claims no partition that
    the member does not own. Raises FENCED_MEMBER_EPOCH."""
    if epoch in (0, member.member_epoch):
        return
    is_retry = (
        epoch == member.previous_epoch < member.member_epoch
        and owned is not None
        and all(
            topic_id in member.assigned and partitions <= member.assigned[topic_id].keys()
            for topic_id, partitions in owned.items()
        )
    )
    if not is_retry:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member's epoch {epoch} is not the coordinator's {member.member_epoch}. "
            "The member must abandon all its partitions and rejoin.",
        )


def _static_member(
    group: ConsumerGroup,
    member_id: str,
    request: ConsumerGroupHeartbeatRequest,
    owned: Partitions | None,
    decision: Decision,
) -> ConsumerMember:
    instance_id = request.instance_id
    assert instance_id is not None
    current = group.static_member(instance_id)
    if request.member_epoch != 0:
        current = known_static(group, member_id, instance_id)
        check_epoch(current, request.member_epoch, owned)
        return current
    if current is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not current.uses_classic and current.member_epoch != STATIC_LEAVE_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID, f"instance id {instance_id} is owned by member {current.member_id}"
        )
    return replace_static(group, current, member_id, decision)


def known_static(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """Returns the owner of an instance id, which must be this member. Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    current = group.static_member(instance_id)
    if current is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if current.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID, f"instance id {instance_id} belongs to member {current.member_id} now"
        )
    return current


def replace_static(group: ConsumerGroup, old: ConsumerMember, member_id: str, decision: Decision) -> ConsumerMember:
    """Replace a static member that rejoined. The new member takes over its place, target and assignment."""
    new = old.copy(member_id=member_id, member_epoch=0, previous_epoch=0)
    for kind in (SESSION, REBALANCE):
        if old.member_id != member_id:
            decision.cancel(group.group_id, kind, old.member_id)
    decision.records += group.member_tombstones(old.member_id)
    decision.records.append(new.metadata_record(group.group_id))
    decision.records.append(group.target_record(member_id, group.target.get(old.member_id, {})))
    decision.records.append(new.assignment_record(group.group_id))
    return new


def _updated(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client) -> ConsumerMember:
    """Returns the member with the fields of the request, or the member itself if they say nothing new. Null keeps the
    earlier value."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    if (
        names is None
        and regex is None
        and timeout_ms == -1
        and request.instance_id is None
        and request.rack_id is None
        and request.server_assignor is None
        and member.client_id == client.client_id
        and member.client_host == client.host
        and member.classic is None
    ):
        return member
    return member.copy(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topics=member.subscribed_topics if names is None else frozenset(names),
        subscribed_regex=member.subscribed_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )


def bump_epoch(
    group: ConsumerGroup,
    member: ConsumerMember,
    updated: ConsumerMember,
    bump: bool,
    context: RequestContext,
) -> tuple[int, bool]:
    """Returns (group epoch, whether all members subscribe to the same topics) after this request. Checks the topics if
    that is due."""
    if not bump and not group.needs_refresh(context.now_ms):
        if group.assignment_epoch >= group.group_epoch:
            return group.group_epoch, True  # no target will be computed, so the second value is not used
        return group.group_epoch, Subscriptions(group).is_homogeneous
    subscriptions = Subscriptions(group, group.replaced_by(member, updated), (updated,))
    epoch, deadline_ms = refresh_epoch(group, bump, subscriptions, context)
    context.decision.refreshes.append((group.group_id, deadline_ms, epoch))
    return epoch, subscriptions.is_homogeneous


def step(
    group: ConsumerGroup,
    member: ConsumerMember,
    target: tuple[int, Partitions],
    subscription_changed: bool,
    owned: Partitions | None,
    context: RequestContext,
) -> ConsumerMember:
    """Move the member one step towards its target (epoch, partitions), and start or stop the timer of its
    revocation."""
    decision = context.decision
    target_epoch, partitions = target
    if not subscription_changed and member.is_reconciled_to(target_epoch):
        return member
    moved = reconcile(
        member,
        target_epoch,
        partitions,
        context.image.topic_ids(group.topics_of(member)),
        subscription_changed,
        owned,
        group.owner_epoch,
    )
    if moved == member:
        return member
    decision.records.append(moved.assignment_record(group.group_id))
    if not moved.uses_classic:
        if moved.state == UNREVOKED:
            decision.schedule(group.group_id, REBALANCE, moved.member_id, moved.rebalance_timeout_ms)
        else:
            decision.cancel(group.group_id, REBALANCE, moved.member_id)
    return moved


def leave(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    image: CoordinatorMetadataImage,
    now_ms: int,
) -> Decision:
    """Epoch -1: the member leaves. Epoch -2: a static member leaves temporarily, and its partitions are kept until its
    session ends, except those that it had to revoke, for which its time runs only after a restart, as in Kafka."""
    decision = Decision()
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = known_static(group, request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        away = member.copy(
            member_epoch=STATIC_LEAVE_EPOCH,
            pending_revocation={},
            assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
        )
        decision.records.append(away.assignment_record(group.group_id))
        decision.cancel(group.group_id, REBALANCE, member.member_id)
    else:
        fence_members(group, [member], image, decision, now_ms)
    decision.response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return decision

"""ShareGroupHeartbeat (KIP-932): join, stay, leave (key 76).

One heartbeat joins or checks the member, records a changed subscription, bumps the group epoch, computes a target
assignment if one is due, moves the member to it, and begins to initialise share partitions that have no state yet.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.assignors import GroupSpec, MemberSpec
from kafka_shim.group.consumer import add_count
from kafka_shim.group.consumer_target import REFRESH_INTERVAL_MS, is_too_early
from kafka_shim.group.decision import SESSION, Decision
from kafka_shim.group.share_assignor import assign_simple
from kafka_shim.group.share_member import LEAVE_EPOCH, ShareMember
from kafka_shim.group.share_offsets import begin_initializing, uninitialized_states
from kafka_shim.java_order import order_ints, order_strings, order_uuids
from kafka_shim.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.group.consumer_member import Partitions
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import RequestContext
    from kafka_shim.group.share import ShareGroup, States
    from kafka_shim.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Check what does not depend on the group. Raises INVALID_REQUEST."""
    for value, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")):
        if value is not None and not value.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def heartbeat(
    group: ShareGroup,
    request: ShareGroupHeartbeatRequest,
    context: RequestContext,
) -> tuple[int, States]:
    """Add the records and the response of a heartbeat that does not leave to the decision. Returns the group epoch, and
    the share partitions that get a state now. Raises GROUP_MAX_SIZE_REACHED and the errors of members."""
    client, image, decision = context.client, context.image, context.decision
    group_id, member_id = group.group_id, request.member_id
    joins = request.member_epoch == 0
    max_size = image.config.group_share_max_size
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"The share group has reached its maximum capacity of {max_size} members."
        )
    member = group.members.get(member_id) if joins else group.member(member_id)
    member = member or ShareMember(member_id)
    check_epoch(member, request.member_epoch)
    names = request.subscribed_topic_names
    updated = member.copy(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topics=member.subscribed_topics if names is None else frozenset(names),
        client_id=client.client_id,
        client_host=client.host,
    )
    if names is not None:
        image.check_names(updated.subscribed_topics)
    if updated != member or member_id not in group.members:
        decision.records.append(updated.metadata_record(group_id))
    bump = updated.subscribed_topics != member.subscribed_topics
    if group.assignment_epoch >= group.group_epoch:
        bump = bump or group.has_unassigned
    epoch, counts = _bump_epoch(group, member, updated, bump, context)
    bump = bump or epoch > group.group_epoch
    target_epoch, target = _update_target(group, epoch, updated, counts, context)
    moved = _reconcile(updated, target_epoch, target, bump, image)
    if moved != updated:
        decision.records.append(moved.assignment_record(group_id))
    decision.schedule(group_id, SESSION, member_id, image.share_session_timeout_ms(group_id))
    response = ShareGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=moved.member_epoch,
        heartbeat_interval_ms=image.share_heartbeat_interval_ms(group_id),
    )
    # A full request comes from a member that may have missed a response. It gets its whole assignment again.
    if joins or names is not None or moved.assigned != member.assigned:
        response.assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=order_ints(moved.assigned[topic_id]))
                for topic_id in order_uuids(moved.assigned)
            ]
        )
    decision.response = response
    new_states = uninitialized_states(group, counts, image, context.now_ms)
    if new_states:
        decision.records.append(begin_initializing(group, new_states, image))
    return epoch, new_states


def check_epoch(member: ShareMember, epoch: int) -> None:
    """Check the member epoch. Epoch 0 rejoins, the previous epoch is a retry. Raises FENCED_MEMBER_EPOCH."""
    current = member.member_epoch
    if epoch in (0, current):
        return
    if epoch > current:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group coordinator "
            f"({current}). The member must abandon all its partitions and rejoin.",
        )
    if epoch != member.previous_epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator "
            f"({current}), and it does not match the previous member epoch ({member.previous_epoch}). The member must "
            "abandon all its partitions and rejoin.",
        )


def _counts_with(group: ShareGroup, old: ShareMember, new: ShareMember | None) -> dict[str, int]:
    """Returns the number of members by topic, with `old` replaced by `new`."""
    counts = dict(group.topic_counts)
    if old.member_id in group.members:
        for topic in old.subscribed_topics:
            add_count(counts, topic, -1)
    if new is not None:
        for topic in new.subscribed_topics:
            add_count(counts, topic, 1)
    return counts


def _bump_epoch(
    group: ShareGroup,
    member: ShareMember,
    updated: ShareMember,
    bump: bool,
    context: RequestContext,
) -> tuple[int, Mapping[str, int]]:
    """Returns (group epoch, number of members by topic) after this request. Checks the topics if that is due."""
    decision, now_ms = context.decision, context.now_ms
    if not bump and not group.needs_refresh(now_ms):
        return group.group_epoch, group.topic_counts
    counts = _counts_with(group, member, updated)
    metadata_hash = context.image.metadata_hash(counts)
    epoch = group.group_epoch
    if bump or metadata_hash != group.metadata_hash:
        epoch += 1
        decision.records.append(group.epoch_record(epoch, metadata_hash))
    decision.refreshes.append((group.group_id, now_ms + REFRESH_INTERVAL_MS, epoch))
    return epoch, counts


def _update_target(
    group: ShareGroup,
    epoch: int,
    updated: ShareMember,
    counts: Mapping[str, int],
    context: RequestContext,
) -> tuple[int, Partitions]:
    """Returns the (epoch, partitions) of the member's target. The target is computed if the group epoch was bumped, at
    most once per `share.assignment.interval.ms`, else the existing one is returned."""
    image, decision, now_ms = context.image, context.decision, context.now_ms
    interval_ms = image.share_assignment_interval_ms(group.group_id)
    if group.assignment_epoch >= epoch or is_too_early(group.assignment_ms, interval_ms, now_ms):
        return group.assignment_epoch, group.target.get(updated.member_id, {})
    spec = _group_spec(group, updated, counts, image)
    initialized = {topic_id: set(states.partitions) for topic_id, states in group.initialized.items()}
    assigned = assign_simple(spec, initialized)
    for member_id in spec.members:
        target = assigned.get(member_id, {})
        if group.target.get(member_id) != target:
            decision.records.append(group.target_record(member_id, target))
    decision.records.append(group.target_epoch_record(epoch, now_ms))
    return epoch, assigned.get(updated.member_id, {})


def _group_spec(
    group: ShareGroup, updated: ShareMember, counts: Mapping[str, int], image: CoordinatorMetadataImage
) -> GroupSpec:
    by_id = {**group.members, updated.member_id: updated}
    resolved: dict[frozenset[str], dict[bytes, None]] = {}
    members: dict[str, MemberSpec] = {}
    partition_counts: dict[bytes, int] = {}
    for member_id in order_strings(by_id):
        names = by_id[member_id].subscribed_topics
        topic_ids = resolved.get(names)
        if topic_ids is None:
            topic_ids = resolved[names] = image.ordered_topic_ids(names)
            partition_counts.update((topic_id, image.partition_count(topic_id)) for topic_id in topic_ids)
        target = group.target.get(member_id, {})
        if any(image.partition_count(topic_id) < 0 for topic_id in target):
            target = {topic_id: found for topic_id, found in target.items() if image.partition_count(topic_id) >= 0}
        members[member_id] = MemberSpec(topic_ids, None, target)
    is_homogeneous = all(count == len(members) for count in counts.values())
    return GroupSpec(members, is_homogeneous, {}, partition_counts)


def _reconcile(
    member: ShareMember,
    target_epoch: int,
    target: Partitions,
    subscription_changed: bool,
    image: CoordinatorMetadataImage,
) -> ShareMember:
    """Returns the member with its target, without topics that it does not subscribe to."""
    if not subscription_changed and member.member_epoch == target_epoch:
        return member
    topic_ids = image.topic_ids(member.subscribed_topics)
    assigned = {topic_id: found for topic_id, found in target.items() if topic_id in topic_ids}
    if target_epoch == member.member_epoch:
        return member.copy(assigned=assigned)
    return member.copy(assigned=assigned, member_epoch=target_epoch, previous_epoch=member.member_epoch, state=0)


def fence(group: ShareGroup, member: ShareMember, image: CoordinatorMetadataImage, decision: Decision) -> None:
    """Remove a member: it left, or its session expired."""
    decision.records += group.member_tombstones(member.member_id)
    metadata_hash = image.metadata_hash(_counts_with(group, member, None))
    decision.records.append(group.epoch_record(group.group_epoch + 1, metadata_hash))
    decision.cancel(group.group_id, SESSION, member.member_id)


def leave(group: ShareGroup, request: ShareGroupHeartbeatRequest, image: CoordinatorMetadataImage) -> Decision:
    """Epoch -1: the member leaves. Raises UNKNOWN_MEMBER_ID."""
    decision = Decision()
    fence(group, group.member(request.member_id), image, decision)
    decision.response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return decision

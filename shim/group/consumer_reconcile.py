"""Moves one member of a consumer group from its current assignment towards its target.

First the member revokes the partitions that are not in the target and stays in its epoch (UNREVOKED). Then it enters
the target's epoch and gets the free partitions. While others still own a part of its target it is UNRELEASED, and every
heartbeat checks again. A partition is free if no member's record owns it, so no partition ever has two owners. Source:
KIP-848, `org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.consumer_member import STABLE, UNKNOWN, UNRELEASED, UNREVOKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.group.consumer_member import ConsumerMember, Epochs, Partitions


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Partitions,
    topic_ids: set[bytes],
    subscription_changed: bool,
    owned: Partitions | None,
    owner_epoch: Callable[[bytes, int], int],
) -> ConsumerMember:
    """Returns the member after its next step, or the same member if there is none.

    `topic_ids`: existing topics that it is subscribed to. `owned`: the partitions that the request lists as owned;
    None: the request has no list. Raises FENCED_MEMBER_EPOCH for a member in a state of a newer version.
    """
    if member.state == STABLE:
        if member.member_epoch != target_epoch:
            return _next(member, member.member_epoch, target_epoch, target, topic_ids, owned, owner_epoch)
        return _drop_unsubscribed(member, topic_ids, owned) if subscription_changed else member
    if member.state == UNREVOKED:
        if _holds_any(owned, member.pending_revocation):
            return _drop_unsubscribed(member, topic_ids, owned) if subscription_changed else member
        return _next(member, member.member_epoch, target_epoch, target, topic_ids, owned, owner_epoch)
    if member.state == UNRELEASED:
        return _next(member, member.member_epoch, target_epoch, target, topic_ids, owned, owner_epoch)
    if member.state == UNKNOWN and (owned is None or owned):
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, "the member's state is unknown: it must give up all and rejoin")
    return _next(member, target_epoch, target_epoch, target, topic_ids, owned, owner_epoch)


def _holds_any(owned: Partitions | None, revoked: Epochs) -> bool:
    """Returns whether the member still owns one of the partitions. A request without a list counts as owning all."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(revoked.get(topic_id, ())) for topic_id, partitions in owned.items())


def _drop_unsubscribed(member: ConsumerMember, topic_ids: set[bytes], owned: Partitions | None) -> ConsumerMember:
    """If the subscription shrank, revoke its former topics at once, before there is a new target."""
    dropped = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in topic_ids}
    if not dropped:
        return member
    assigned = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in topic_ids}
    revoked = dict(member.pending_revocation)
    for topic_id, epochs in dropped.items():
        revoked[topic_id] = {**revoked.get(topic_id, {}), **epochs}
    epoch = member.member_epoch
    if _holds_any(owned, revoked):
        return member.copy(state=UNREVOKED, previous_epoch=epoch, assigned=assigned, pending_revocation=revoked)
    return member.copy(previous_epoch=epoch, assigned=assigned)


def _next(
    member: ConsumerMember,
    current_epoch: int,
    target_epoch: int,
    target: Partitions,
    topic_ids: set[bytes],
    owned: Partitions | None,
    owner_epoch: Callable[[bytes, int], int],
) -> ConsumerMember:
    kept: Epochs = {}
    revoked: Epochs = {}
    free: Epochs = {}
    waits = False
    for topic_id in [*target, *(each for each in member.assigned if each not in target)]:
        wanted = target.get(topic_id, set()) if topic_id in topic_ids else set()
        has = member.assigned.get(topic_id, {})
        keep = {partition: epoch for partition, epoch in has.items() if partition in wanted}
        revoke = {partition: epoch for partition, epoch in has.items() if partition not in wanted}
        giving_up = member.pending_revocation.get(topic_id, {})
        new = {}
        for partition in wanted:
            if partition in keep:
                continue
            # A partition that the member itself revokes and gets again is free for it.
            if owner_epoch(topic_id, partition) != -1 and partition not in giving_up:
                waits = True
            else:
                new[partition] = target_epoch
        if keep:
            kept[topic_id] = keep
        if revoke:
            revoked[topic_id] = revoke
        if new:
            free[topic_id] = new
    if revoked and _holds_any(owned, revoked):
        return member.copy(
            state=UNREVOKED,
            previous_epoch=member.member_epoch,
            member_epoch=current_epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    for topic_id, new in free.items():
        kept[topic_id] = {**kept.get(topic_id, {}), **new}
    return member.copy(
        state=UNRELEASED if waits else STABLE,
        previous_epoch=member.member_epoch,
        member_epoch=target_epoch,
        assigned=kept,
        pending_revocation={},
    )

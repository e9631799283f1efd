"""Removal of members of a consumer group: they left, their session expired, or they did not revoke in time."""

from __future__ import annotations

from kafka_shim.group.consumer_member import UNREVOKED
from kafka_shim.group.consumer_target import Subscriptions
from kafka_shim.group.decision import JOIN, REBALANCE, SESSION, SYNC, Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.consumer import ConsumerGroup
    from kafka_shim.group.consumer_member import ConsumerMember
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage


def fence_members(
    group: ConsumerGroup,
    members: list[ConsumerMember],
    image: CoordinatorMetadataImage,
    decision: Decision,
    now_ms: int,
) -> None:
    """Remove members and bump the group epoch. If only classic members remain and `group.consumer.migration.policy`
    allows it, convert the group to the classic protocol."""
    if not members:
        return
    from kafka_shim.group.migration import can_downgrade, downgrade

    gone = {member.member_id for member in members}
    for member_id in gone:
        for kind in (SESSION, REBALANCE, JOIN, SYNC):
            decision.cancel(group.group_id, kind, member_id)
    if can_downgrade(group, gone, image.config):
        downgrade(group, gone, None, image, decision, now_ms, rebalance=True)
        return
    for member_id in gone:
        decision.records += group.member_tombstones(member_id)
    subscriptions = Subscriptions(group, members)
    dropped = {member.regex for member in members if member.regex is not None} - subscriptions.regexes.keys()
    decision.records += [group.regex_tombstone(regex) for regex in sorted(dropped)]
    metadata_hash = image.metadata_hash(subscriptions.topics)
    decision.records.append(group.epoch_record(group.group_epoch + 1, metadata_hash))


def session_over(group: ConsumerGroup, member_id: str, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
    """Handle the timers SESSION, and JOIN and SYNC of a classic member that did not rejoin or sync in a rebalance."""
    decision = Decision()
    member = group.members.get(member_id)
    if member is not None:
        fence_members(group, [member], image, decision, now_ms)
    return decision


def revocation_over(group: ConsumerGroup, member_id: str, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
    """Handle the timer REBALANCE: the member still owns what it had to revoke."""
    decision = Decision()
    member = group.members.get(member_id)
    if member is not None and member.state == UNREVOKED:
        fence_members(group, [member], image, decision, now_ms)
    return decision

"""The target assignment of a consumer group, and the group epoch.

`refresh_epoch` checks subscriptions and topics, and bumps the group epoch if they changed. `update_target` computes the
assignment of a new epoch, at most once per assignment interval (KIP-1263). Both add records to the caller's list. The
group itself changes only when those are applied, so a rule uses the returned values for its further decisions.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.assignors import ASSIGNORS, GroupSpec, MemberSpec
from kafka_shim.group.consumer import add_count
from kafka_shim.java_order import order_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.group.consumer import ConsumerGroup
    from kafka_shim.group.consumer_member import ConsumerMember, Partitions
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import RequestContext

# Topic changes request a refresh. A periodic refresh without a change is only a safety net.
REFRESH_INTERVAL_MS = 0x7FFFFFFF


def is_too_early(assigned_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Returns whether the target computed at `assigned_ms` (0: unknown) stays until the assignment interval is over. A
    time to come is unknown, too: the clock was set back, and nobody would own what is free until it is there again."""
    return 0 < assigned_ms <= now_ms < assigned_ms + interval_ms


class Subscriptions:
    """The group's subscriptions without the members `gone` and with the members `come`: for each topic, the number of
    members that name it and the number of expressions that match it. An expression without a member is not counted."""

    __slots__ = ("by_name", "by_regex", "member_count", "regexes")

    def __init__(
        self, group: ConsumerGroup, gone: Iterable[ConsumerMember] = (), come: Iterable[ConsumerMember] = ()
    ) -> None:
        self.by_name = dict(group.topic_counts)
        self.regexes = dict(group.regexes)
        self.member_count = len(group.members)
        dropped = set()
        for members, change in ((gone, -1), (come, 1)):
            for member in members:
                self.member_count += change
                for topic in member.subscribed_topics:
                    add_count(self.by_name, topic, change)
                if member.regex is not None:
                    add_count(self.regexes, member.regex, change)
                    dropped.add(member.regex)
        self.by_regex: dict[str, int] = {}
        for regex, resolved in group.resolved.items():
            if regex in dropped and regex not in self.regexes:
                continue
            for topic in resolved.topics:
                add_count(self.by_regex, topic, 1)

    @property
    def topics(self) -> set[str]:
        """Returns the topics that are subscribed to by name or by expression."""
        return self.by_name.keys() | self.by_regex.keys()

    @property
    def is_homogeneous(self) -> bool:
        """Returns whether all members subscribe to the same topics, as far as the counts show."""
        if not self.regexes:
            return all(self.by_name.get(topic) == self.member_count for topic in self.topics)
        if next(iter(self.regexes.values())) != self.member_count:
            return False
        return not self.by_name and all(count == 1 for count in self.by_regex.values())


def refresh_epoch(
    group: ConsumerGroup, bump: bool, subscriptions: Subscriptions, context: RequestContext
) -> tuple[int, int]:
    """Returns the (epoch, time of the next refresh) after this request. The epoch is bumped if `bump` is set or the
    topics changed."""
    records = context.decision.records
    metadata_hash = context.image.metadata_hash(subscriptions.topics)
    epoch = group.group_epoch
    if bump or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(group.epoch_record(epoch, metadata_hash))
    if group.has_partition_metadata_record:
        records.append(group.partition_metadata_tombstone())
    return epoch, context.now_ms + REFRESH_INTERVAL_MS


def update_target(
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerMember | None,
    new: ConsumerMember,
    is_homogeneous: bool,
    context: RequestContext,
) -> tuple[int, Partitions]:
    """Returns the (epoch, partitions) of `new`'s target. The target is computed if the group epoch was bumped, else the
    existing one is returned."""
    image, records, now_ms = context.image, context.decision.records, context.now_ms
    interval_ms = image.assignment_interval_ms(group.group_id)
    if group.assignment_epoch >= epoch or is_too_early(group.assignment_ms, interval_ms, now_ms):
        return group.assignment_epoch, group.target_of(new)
    default = image.config.group_consumer_assignors[0]
    assignor = ASSIGNORS.get(group.preferred_assignor(default, old, new))
    if assignor is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group's assignor is not there")
    spec = group_spec(group, new, is_homogeneous, image)
    assigned = assignor(spec)
    for member_id in spec.members:
        target = assigned.get(member_id, {})
        if group.target.get(member_id) != target:
            records.append(group.target_record(member_id, target))
    records.append(group.target_epoch_record(epoch, now_ms))
    return epoch, assigned.get(new.member_id, {})


def group_spec(
    group: ConsumerGroup, new: ConsumerMember, is_homogeneous: bool, image: CoordinatorMetadataImage
) -> GroupSpec:
    """Returns the input of an assignor, with `new` in place of the members that it replaces."""
    by_id = {member.member_id: member for member in group.members_with(None, new)}
    resolved_ids: dict[frozenset[str], dict[bytes, None]] = {}
    members: dict[str, MemberSpec] = {}
    counts: dict[bytes, int] = {}
    for member_id in order_strings(by_id):
        member = by_id[member_id]
        names = group.topics_of(member)
        topic_ids = resolved_ids.get(names)
        if topic_ids is None:
            # Most members share one subscription.
            topic_ids = resolved_ids[names] = image.ordered_topic_ids(names)
            counts.update((topic_id, image.partition_count(topic_id)) for topic_id in topic_ids)
        previous = member_id
        if member.instance_id is not None:
            previous = group.static_members.get(member.instance_id, member_id)
        target = group.target.get(previous, {})
        members[member_id] = MemberSpec(topic_ids, member.instance_id, _existing(target, image))
    assigned: Partitions = {}
    for target in group.target.values():
        for topic_id, partitions in target.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return GroupSpec(members, is_homogeneous, assigned, counts)


def _existing(target: Partitions, image: CoordinatorMetadataImage) -> Partitions:
    """Returns the partitions without deleted topics."""
    if all(image.partition_count(topic_id) >= 0 for topic_id in target):
        return target
    return {topic_id: partitions for topic_id, partitions in target.items() if image.partition_count(topic_id) >= 0}

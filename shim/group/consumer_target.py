"""The target assignment of a consumer group, and when the group's epoch moves on.

`refresh_epoch` looks at subscriptions and topics and bumps the group epoch if they changed; `update_target` computes
the assignment of a new epoch, at most once per assignment interval (KIP-1263). Both add records to the caller's list;
the group itself does not change until those are applied, so what a rule decides further on works with the answers here.
"""

from __future__ import annotations

from shim.errors import ErrorCode, KafkaError
from shim.group.assignors import ASSIGNORS, GroupSpec, MemberSpec
from shim.group.java_order import order_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from shim.group.consumer import ConsumerGroup
    from shim.group.consumer_member import ConsumerMember, Partitions
    from shim.group.records import Record
    from shim.group.surroundings import Surroundings

# Topics are watched: a refresh without a change is only a safety net.
REFRESH_INTERVAL_MS = 0x7FFFFFFF


class Subscriptions:
    """Who wants what, if the group's members were these: topic -> (members by name, expressions that match)."""

    __slots__ = ("counts", "member_count", "regexes")

    def __init__(
        self, group: ConsumerGroup, members: Iterable[ConsumerMember], dropped_regexes: Iterable[str] = ()
    ) -> None:
        self.counts: dict[str, list[int]] = {}
        self.regexes: dict[str, int] = {}
        self.member_count = 0
        for member in members:
            self.member_count += 1
            for topic in member.subscribed_topics:
                self.counts.setdefault(topic, [0, 0])[0] += 1
            if member.regex is not None:
                self.regexes[member.regex] = self.regexes.get(member.regex, 0) + 1
        for regex, resolved in group.resolved.items():
            if regex not in dropped_regexes:
                for topic in resolved.topics:
                    self.counts.setdefault(topic, [0, 0])[1] += 1

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members want the same topics, as far as counting tells."""
        if not self.regexes:
            return all(by_name == self.member_count for by_name, _ in self.counts.values())
        if next(iter(self.regexes.values())) != self.member_count:
            return False
        return all(by_name == 0 and by_regex == 1 for by_name, by_regex in self.counts.values())


def subscriptions_with(
    group: ConsumerGroup, old: ConsumerMember | None = None, new: ConsumerMember | None = None
) -> Subscriptions:
    """With `old` replaced by `new`; an expression that only `old` had goes with it."""
    dropped = []
    is_changed = old is not None and new is not None and new.regex != old.regex
    if is_changed and old is not None and old.regex is not None and group.regex_counts().get(old.regex, 0) == 1:
        dropped.append(old.regex)
    return Subscriptions(group, group.members_with(old, new), dropped)


def refresh_epoch(
    group: ConsumerGroup,
    bump: bool,
    subscriptions: Subscriptions,
    surroundings: Surroundings,
    records: list[Record],
    now_ms: int,
) -> tuple[int, int]:
    """The (group epoch, time of the next refresh) from now on. The epoch moves when `bump` or the topics changed."""
    metadata_hash = surroundings.metadata_hash(subscriptions.counts)
    epoch = group.group_epoch
    if bump or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(group.epoch_record(epoch, metadata_hash))
    if group.has_partition_metadata_record:
        records.append(group.partition_metadata_tombstone())
    return epoch, now_ms + REFRESH_INTERVAL_MS


def update_target(
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerMember | None,
    new: ConsumerMember,
    is_homogeneous: bool,
    surroundings: Surroundings,
    records: list[Record],
    now_ms: int,
) -> tuple[int, Partitions]:
    """The (epoch, partitions) of `new`'s target: computed if the group moved on, else what it is."""
    interval_ms = surroundings.assignment_interval_ms(group.group_id)
    is_too_early = group.assignment_ms > 0 and interval_ms > 0 and now_ms < group.assignment_ms + interval_ms
    if group.assignment_epoch >= epoch or is_too_early:
        return group.assignment_epoch, group.target_of(new)
    default = surroundings.config.group_consumer_assignors[0]
    assignor = ASSIGNORS.get(group.preferred_assignor(default, old, new))
    if assignor is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group's assignor is not there")
    spec = group_spec(group, new, is_homogeneous, surroundings)
    assigned = assignor(spec)
    for member_id in spec.members:
        target = assigned.get(member_id, {})
        if group.target.get(member_id) != target:
            records.append(group.target_record(member_id, target))
    records.append(group.target_epoch_record(epoch, now_ms))
    return epoch, assigned.get(new.member_id, {})


def group_spec(
    group: ConsumerGroup, new: ConsumerMember, is_homogeneous: bool, surroundings: Surroundings
) -> GroupSpec:
    """The input of an assignor, with `new` in the place of what it replaces."""
    by_id = {member.member_id: member for member in group.members_with(None, new)}
    resolved_ids: dict[frozenset[str], dict[bytes, None]] = {}
    members: dict[str, MemberSpec] = {}
    counts: dict[bytes, int] = {}
    for member_id in order_strings(by_id):
        member = by_id[member_id]
        names = group.topics_of(member)
        topic_ids = resolved_ids.get(names)
        if topic_ids is None:
            # Members mostly share one subscription.
            topic_ids = resolved_ids[names] = surroundings.ordered_topic_ids(names)
            counts.update((topic_id, surroundings.partition_count(topic_id)) for topic_id in topic_ids)
        previous = member_id
        if member.instance_id is not None:
            previous = group.static_members.get(member.instance_id, member_id)
        target = group.target.get(previous, {})
        members[member_id] = MemberSpec(topic_ids, member.instance_id, _existing(target, surroundings))
    assigned = {
        (topic_id, partition)
        for target in group.target.values()
        for topic_id, partitions in target.items()
        for partition in partitions
    }
    return GroupSpec(members, is_homogeneous, assigned, counts)


def _existing(target: Partitions, surroundings: Surroundings) -> Partitions:
    """Without topics that are gone."""
    if all(surroundings.partition_count(topic_id) >= 0 for topic_id in target):
        return target
    return {
        topic_id: partitions for topic_id, partitions in target.items() if surroundings.partition_count(topic_id) >= 0
    }

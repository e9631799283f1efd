"""A group of the consumer protocol (KIP-848): its members, epochs, target assignment and regular expressions.

Every change that a record carries is made by `Groups.apply` and the record handlers of `consumer_kind`, for live
requests and at start-up alike. Nothing here decides: the rules are in `consumer_heartbeat`, `consumer_reconcile`,
`consumer_target`, `consumer_regex` and `consumer_classic`.

The group epoch is bumped when subscriptions, members or topics change. The assignment epoch follows when a new target
assignment is computed. A member's epoch follows when the member has revoked what the target takes from it. The state is
derived:

Empty: no members.
    ConsumerGroupHeartbeat with epoch 0 joins, other epochs get UNKNOWN_MEMBER_ID. OffsetCommit with an epoch below 0 is
    accepted from any client.
Assigning: the group epoch is ahead of the assignment epoch.
    The next heartbeat computes the target, at most once per assignment interval.
Reconciling: a member is not STABLE in the assignment epoch.
    A heartbeat moves its member on.
Stable: all members are.
    The heartbeat response contains nothing new.

OffsetCommit is accepted at the member's epoch, or at an older one in which the member had the partition.

A member with a wrong epoch gets FENCED_MEMBER_EPOCH and must rejoin with 0. The previous epoch is accepted if the
response was lost.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import consumer_protocol
from kafka_shim.group.consumer_member import UNRELEASED, ConsumerMember, Epochs, Partitions
from kafka_shim.group.consumer_records import ConsumerGroupRecords
from kafka_shim.group.modern_group import CommittingGroup
from kafka_shim.java_order import copied_map_size, order_strings, order_timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import Literal

    from kafka_shim.protocol.records.consumer_group_target_assignment_member_value import (
        ConsumerGroupTargetAssignmentMemberValue,
    )

MAX_INT64 = 0x7FFFFFFFFFFFFFFF


def add_count(counts: dict[str, int], key: str, change: int) -> None:
    """Add `change` to a counter. A counter that reaches 0 is removed."""
    left = counts[key] = counts.get(key, 0) + change
    if not left:
        del counts[key]


class Resolved:
    """The topics that a regular expression matched, with the metadata version and the time of the match."""

    __slots__ = ("timestamp_ms", "topics", "version")

    def __init__(self, topics: frozenset[str], version: int, timestamp_ms: int) -> None:
        self.topics = topics
        self.version = version
        self.timestamp_ms = timestamp_ms


class ConsumerGroup(ConsumerGroupRecords, CommittingGroup[ConsumerMember]):
    """One group. Owned by `Groups`."""

    TYPE: Literal["consumer"] = "consumer"

    __slots__ = (
        "assignment_epoch",
        "assignment_ms",
        "classic_count",
        "group_epoch",
        "group_id",
        "has_partition_metadata_record",
        "matching",
        "may_describe",
        "members",
        "metadata_hash",
        "owners",
        "refresh_deadline_ms",
        "refresh_epoch",
        "regexes",
        "resolved",
        "static_members",
        "target",
        "topic_counts",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        # --- from records
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = -1
        # When the target was computed; 0: never, or unknown.
        self.assignment_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Partitions] = {}
        self.resolved: dict[str, Resolved] = {}
        # Whether a record of Kafka before 4.0 exists that must be deleted.
        self.has_partition_metadata_record = False
        # --- follows from the above
        self.static_members: dict[str, str] = {}
        # The number of members by subscribed topic and by regular expression, and the number of classic members. They
        # are counted as members join and leave, so that a join costs the same in a group of any size, apart from its
        # assignment.
        self.topic_counts: dict[str, int] = {}
        self.regexes: dict[str, int] = {}
        self.classic_count = 0
        # topic id -> partition -> epoch of the member that still owns it
        self.owners: Epochs = {}
        # --- memory: when the topics are looked at again, and the epoch that decision belongs to
        self.refresh_deadline_ms = 0
        self.refresh_epoch = 0
        # Which topics the client whose request asked for the next resolution may describe; None: all.
        self.may_describe: Callable[[str], bool] | None = None
        # The generator that resolves the regular expressions, while it runs.
        self.matching: Generator[None, None, tuple[dict[str, frozenset[str]], int]] | None = None

    # --- questions

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def protocol_type(self) -> str:
        return consumer_protocol.PROTOCOL_TYPE

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Returns the member that owns this instance id, or None."""
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerMember) -> Partitions:
        """Returns the target of a member, or of the static member that it replaces."""
        if member.instance_id is None:
            return self.target.get(member.member_id, {})
        previous = self.static_members.get(member.instance_id)
        return {} if previous is None else self.target.get(previous, {})

    def owner_epoch(self, topic_id: bytes, partition: int) -> int:
        """Returns the epoch of the member that owns this partition, or -1 if none does."""
        return self.owners.get(topic_id, {}).get(partition, -1)

    def needs_refresh(self, now_ms: int) -> bool:
        """Returns whether the topics must be checked for changes."""
        return now_ms >= self.refresh_deadline_ms or self.group_epoch < self.refresh_epoch

    def set_refresh(self, deadline_ms: int, epoch: int) -> None:
        """The topics need no check until the deadline, provided that the group reaches this epoch."""
        self.refresh_deadline_ms = deadline_ms
        self.refresh_epoch = epoch

    def request_refresh(self) -> None:
        """Check the topics at the next heartbeat, because a topic changed."""
        self.refresh_deadline_ms = 0
        self.refresh_epoch = 0

    def _count(self, member: ConsumerMember, change: int) -> None:
        for topic in member.subscribed_topics:
            add_count(self.topic_counts, topic, change)
        if member.regex is not None:
            add_count(self.regexes, member.regex, change)
        if member.uses_classic:
            self.classic_count += change

    def replaced_by(self, old: ConsumerMember | None, new: ConsumerMember | None) -> list[ConsumerMember]:
        """Returns the members that are removed when `new` replaces `old` and the static member with its instance id."""
        gone = {}
        for each in (old, new):
            if each is not None:
                gone[each.member_id] = self.members.get(each.member_id)
        if new is not None and new.instance_id is not None:
            current = self.static_member(new.instance_id)
            if current is not None:
                gone[current.member_id] = current
        return [member for member in gone.values() if member is not None]

    def members_with(self, old: ConsumerMember | None, new: ConsumerMember | None) -> list[ConsumerMember]:
        """Returns the members with `old` replaced by `new`."""
        gone = {member.member_id for member in self.replaced_by(old, new)}
        members = [member for member in self.members.values() if member.member_id not in gone]
        return members if new is None else [*members, new]

    def is_subscribed(self, topic: str) -> bool:
        """Returns whether the offsets of this topic are in use."""
        return topic in self.topic_counts or any(topic in resolved.topics for resolved in self.resolved.values())

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Returns the topics that a member is subscribed to, including those that its expression matched."""
        if member.regex is None:
            return member.subscribed_topics
        resolved = self.resolved.get(member.regex)
        return member.subscribed_topics if resolved is None else member.subscribed_topics | resolved.topics

    def preferred_assignor(
        self, default: str, old: ConsumerMember | None = None, new: ConsumerMember | None = None
    ) -> str:
        """Returns the assignor that most members ask for, once `new` has replaced `old`. A tie goes to the first in
        Kafka's order: that of its map of the votes, or of a copy with the votes of these members changed
        (computePreferredServerAssignor). A name that the copy did not have comes first in its bucket."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.server_assignor is not None:
                votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
        order = order_timeline(votes)
        if old is not None or new is not None:
            size = copied_map_size(len(order))
            for member in self.replaced_by(old, new):
                if member.server_assignor is not None:
                    votes[member.server_assignor] -= 1
            order = [name for name in order if votes[name]]
            if new is not None and new.server_assignor is not None:
                votes[new.server_assignor] = votes.get(new.server_assignor, 0) + 1
                if new.server_assignor not in order:
                    order.insert(0, new.server_assignor)
            order = order_strings(order, size)
        return max(order, key=votes.__getitem__) if order else default

    # --- classic members

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Returns whether a classic member with these protocols can join: all classic members need one in common."""
        if protocol_type != consumer_protocol.PROTOCOL_TYPE:
            return False
        if not self.members:
            return any(True for _ in names)
        known = [
            {protocol.name for protocol in member.classic.supported_protocols}
            for member in self.members.values()
            if member.classic is not None
        ]
        return any(all(name in protocols for protocols in known) for name in names)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Returns whether another member still owns a partition of this member's target."""
        return member.state == UNRELEASED and any(
            partition not in member.assigned.get(topic_id, {}) and self.owner_epoch(topic_id, partition) != -1
            for topic_id, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )

    # --- offsets

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, transactional: bool, version: int
    ) -> Callable[[str, bytes, int], None] | None:
        """Raises an error if this member may not commit. Returns None, or a check for each (topic id, partition): an
        older epoch is valid for partitions that the member has had since then (KIP-1251)."""
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch == -1 and member_id == "" and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and not member.uses_classic and version < 9:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "consumer protocol members commit with version 9 or above")
        if epoch == member.member_epoch:
            return None
        stale = ErrorCode.ILLEGAL_GENERATION if member.uses_classic else ErrorCode.STALE_MEMBER_EPOCH
        if epoch > member.member_epoch:
            raise KafkaError(stale, f"epoch {epoch} is ahead of the member's {member.member_epoch}")

        def check(topic: str, topic_id: bytes, partition: int) -> None:
            since = member.assigned.get(topic_id, {}).get(partition)
            if since is None:
                since = member.pending_revocation.get(topic_id, {}).get(partition)
            if since is None or epoch < since:
                raise KafkaError(stale, f"the member has not had partition {partition} in epoch {epoch}")

        return check

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check the member that OffsetFetch v9+ names. A request without a member is not checked. Raises
        UNKNOWN_MEMBER_ID, and STALE_MEMBER_EPOCH, for a classic member ILLEGAL_GENERATION, for another epoch."""
        member = self.reader(member_id, epoch)
        if member is not None and epoch != member.member_epoch:
            code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic else ErrorCode.STALE_MEMBER_EPOCH
            raise KafkaError(code, f"epoch {epoch}, expected {member.member_epoch}")

    # --- changes

    def put_member(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
            self._count(old, -1)
        self._count(member, 1)
        self.members[member.member_id] = member
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(epochs, member.member_epoch))
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def drop_member(self, member_id: str) -> None:
        """Remove a member."""
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._release(old)
        self._count(old, -1)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def _release(self, old: ConsumerMember) -> None:
        for partitions in (old.assigned, old.pending_revocation):
            for topic_id, epochs in partitions.items():
                owned = self.owners.get(topic_id)
                if owned is None:
                    continue
                for partition in epochs:
                    # A member with another epoch may own it by now.
                    if owned.get(partition) == old.member_epoch:
                        del owned[partition]
                if not owned:
                    del self.owners[topic_id]

    def put_target(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue) -> None:
        """Replace a member's target."""
        self.target[member_id] = {bytes(entry.topic_id): set(entry.partitions) for entry in value.topic_partitions}

"""One immutable member of a consumer group (KIP-848). Rules create changed copies, records carry them, and `apply`
stores them.

Assignments are dicts of topic id -> partition -> epoch in which the member got it. They are never changed in place.
"""

from __future__ import annotations

from operator import attrgetter

from kafka_shim.group.records import Record
from kafka_shim.protocol.records.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kafka_shim.protocol.records.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kafka_shim.protocol.records.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_shim.protocol.records.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.records.consumer_group_member_metadata_value import ClassicMemberMetadata

Epochs = dict[bytes, dict[int, int]]
Partitions = dict[bytes, set[int]]

# States of a member, as its record stores them.
# STABLE: it has what its target assignment gives, or waits for nothing.
# UNREVOKED: it still holds partitions that it must give up; it stays in its epoch until it has.
# UNRELEASED: it is in the new epoch, but some of its partitions are still with others.
# UNKNOWN: written by a newer version; the member must rejoin.
STABLE = 0
UNREVOKED = 1
UNRELEASED = 2
UNKNOWN = 127

LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

_FIELDS = (
    "assigned",
    "classic",
    "client_host",
    "client_id",
    "instance_id",
    "member_epoch",
    "member_id",
    "pending_revocation",
    "previous_epoch",
    "rack_id",
    "rebalance_timeout_ms",
    "server_assignor",
    "state",
    "subscribed_regex",
    "subscribed_topics",
)
_fields_of = attrgetter(*_FIELDS)


class ConsumerMember:
    """`classic` is None, or what a member of the classic protocol sent when it joined this group."""

    __slots__ = _FIELDS

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        # --- what the member says
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = -1
        self.subscribed_topics: frozenset[str] = frozenset()
        self.subscribed_regex: str | None = ""
        self.server_assignor: str | None = None
        self.classic: ClassicMemberMetadata | None = None
        # --- what the coordinator decided
        self.member_epoch = 0
        self.previous_epoch = -1
        self.state = STABLE
        self.assigned: Epochs = {}
        self.pending_revocation: Epochs = {}

    def copy(self, **changes: Any) -> ConsumerMember:
        """Returns a copy of the member with these fields changed."""
        new = ConsumerMember.__new__(ConsumerMember)
        # In the order of _FIELDS. A heartbeat copies its member, so this is no loop over names.
        (
            new.assigned,
            new.classic,
            new.client_host,
            new.client_id,
            new.instance_id,
            new.member_epoch,
            new.member_id,
            new.pending_revocation,
            new.previous_epoch,
            new.rack_id,
            new.rebalance_timeout_ms,
            new.server_assignor,
            new.state,
            new.subscribed_regex,
            new.subscribed_topics,
        ) = _fields_of(self)
        for name, value in changes.items():
            setattr(new, name, value)
        return new

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ConsumerMember):
            return NotImplemented
        return _fields_of(self) == _fields_of(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ConsumerMember({self.member_id!r}, epoch {self.member_epoch}, state {self.state}, {self.assigned})"

    @property
    def uses_classic(self) -> bool:
        return self.classic is not None

    @property
    def regex(self) -> str | None:
        """Its regular expression, or None."""
        return self.subscribed_regex or None

    def is_reconciled_to(self, epoch: int) -> bool:
        """Returns whether the member has reached this assignment epoch and has nothing left to do."""
        return self.state == STABLE and self.member_epoch == epoch

    def classic_protocol(self) -> tuple[str, bytes]:
        """Returns (name, metadata) of the protocol that a classic member prefers."""
        assert self.classic is not None
        first = self.classic.supported_protocols[0]
        return first.name, first.metadata

    # --- records

    def metadata_record(self, group_id: str) -> Record:
        """The record of what the member sent."""
        value = ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.subscribed_topics),
            subscribed_topic_regex=self.subscribed_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )
        return Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=self.member_id), value)

    def assignment_record(self, group_id: str) -> Record:
        """The record of the member's current assignment."""
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_topic_partitions(self.assigned),
            partitions_pending_revocation=_topic_partitions(self.pending_revocation),
        )
        return Record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.member_id), value)

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        """Returns the member with the values of its metadata record."""
        return self.copy(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            subscribed_topics=frozenset(value.subscribed_topic_names),
            subscribed_regex=value.subscribed_topic_regex,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """Returns the member with the values of its assignment record."""
        state = value.state if value.state in (STABLE, UNREVOKED, UNRELEASED) else UNKNOWN
        return self.copy(
            member_epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=state,
            assigned=_epochs(value.assigned_partitions, value.member_epoch),
            pending_revocation=_epochs(value.partitions_pending_revocation, value.member_epoch),
        )


def _topic_partitions(epochs: Epochs) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=list(found), assignment_epochs=list(found.values()))
        for topic_id, found in epochs.items()
    ]


def _epochs(recorded: list[TopicPartitions], member_epoch: int) -> Epochs:
    """Returns the assignment with its epochs. Records before KIP-1251 have none: the member's own epoch is used."""
    found: Epochs = {}
    for entry in recorded:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [max(member_epoch, 0)] * len(entry.partitions)
        found[bytes(entry.topic_id)] = dict(zip(entry.partitions, epochs, strict=True))
    return found

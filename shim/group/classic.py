"""A group of the classic protocol: its members, protocols, generation and records.

The rules for requests are in `classic_join`, `classic_sync` and `classic_leave`. Every state change goes through
`ClassicGroup.enter`; `classic_state` says what each state returns. Nothing here reads a clock or waits. Only `replay`
builds a group from its record. In memory a group holds more than the record (waiting requests, every protocol that a
member supports), so the rules change the group directly. What the record holds changes only after the append;
docs/DESIGN.md lists the rest.

Source: KIP-62, KIP-345, KIP-394 and `org.apache.kafka.coordinator.group.classic`.
"""

from __future__ import annotations

from kafka_shim.cext.classic_members import ClassicGroupBase
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import consumer_protocol
from kafka_shim.group.classic_member import ClassicMember
from kafka_shim.group.classic_state import ALLOWED_FROM, COMPLETING, DEAD, EMPTY, PREPARING, STABLE, State
from kafka_shim.group.records import GROUP_METADATA_VERSION, GroupRecord, Record
from kafka_shim.java_order import order_strings
from kafka_shim.protocol.records.group_metadata_key import GroupMetadataKey
from kafka_shim.protocol.records.group_metadata_value import GroupMetadataValue, MemberMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from kafka_shim.group.classic_member import Protocols


# The limit on all members' subscriptions, in bytes, when a generation begins. Larger ones would not fit the group's
# record and would take over 100 ms to parse.
MAX_READ_BYTES = 2 * consumer_protocol.MAX_BYTES


class ClassicGroup(ClassicGroupBase):
    """One group. Owned by `Groups` and changed only by the rules in `classic_*`. What happens once for each member is
    in the base, in C."""

    TYPE: Literal["classic"] = "classic"

    __slots__ = ("gathering_ends_ms", "group_id", "state_ms", "subscribed_topics")

    if TYPE_CHECKING:
        state: State
        previous_state: State

    def __init__(self, group_id: str, now_ms: int, state: State = EMPTY) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = state
        # When this state began; -1 if an old record did not contain it.
        self.state_ms = now_ms
        self.generation_id = 0
        # None until the first member joins. Kept when the group becomes empty again.
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        # Derived from the members, so that a join costs the same in a group of any size: the members that wait for the
        # end of the join phase, the number of members that support each protocol, and the total size of their metadata.
        self.joining: set[str] = set()
        self.protocol_counts: dict[str, int] = {}
        self.metadata_bytes = 0
        # instance id -> member id
        self.static_members: dict[str, str] = {}
        # Member ids assigned with MEMBER_ID_REQUIRED whose second JoinGroup has not arrived.
        self.pending_joins: dict[str, None] = {}
        # Members of this generation that have not sent SyncGroup.
        self.pending_syncs: set[str] = set()
        # Whether a member joined since the initial delay was last extended, and until when it can be: for the rebalance
        # timeout of those that joined first.
        self.new_member_added = False
        self.gathering_ends_ms = 0
        # None: not a consumer group, or the subscriptions cannot be parsed. Then `is_subscribed` depends on the
        # protocol type.
        self.subscribed_topics: frozenset[str] | None = None

    # --- state

    def enter(self, state: State, now_ms: int) -> None:
        """Change the state. Raises AssertionError for a transition that is not allowed."""
        if self.state not in ALLOWED_FROM[state]:
            raise AssertionError(f"{self.group_id}: {self.state.name} -> {state.name}")
        self.previous_state = self.state
        self.state = state
        self.state_ms = now_ms

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def can_rebalance(self) -> bool:
        return self.state in ALLOWED_FROM[PREPARING]

    # --- members

    def replace_static(self, old: ClassicMember, new: ClassicMember) -> None:
        """Replace a static member that rejoined under a new member id. It keeps its place."""
        # It keeps its place in the order, because a restart must not change the next leader.
        self.members = {
            (new.member_id if each is old else member_id): (new if each is old else each)
            for member_id, each in self.members.items()
        }
        self.joining.discard(old.member_id)
        self.count_protocols(old, -1)
        self.count_protocols(new, 1)
        if self.leader_id == old.member_id:
            self.leader_id = new.member_id
        assert new.instance_id is not None
        self.static_members[new.instance_id] = new.member_id

    def elect_joined_leader(self) -> bool:
        """If the leader has not joined, make a member that has joined the leader. Returns False if none has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Returns the member that sends a request. Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # --- protocols

    def change_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        """Replace the member's protocols with those of its new JoinGroup."""
        self.count_protocols(member, -1)
        member.protocols = protocols
        self.count_protocols(member, 1)

    def select_protocol(self) -> str:
        """Returns the protocol with the most votes. Each member votes for the first of its protocols that all members
        support; a tie goes to the first in the order of a Java HashMap."""
        common = {name for name, count in self.protocol_counts.items() if count == len(self.members)}
        if len(common) == 1:
            return next(iter(common))
        votes: dict[str, int] = {}
        for member in self.members.values():
            for name, _ in member.protocols:
                if name in common:
                    votes[name] = votes.get(name, 0) + 1
                    break
        return max(order_strings(votes), key=votes.__getitem__)

    def start_generation(self, now_ms: int) -> None:
        """Start the next generation at the end of the join phase."""
        self.generation_id += 1
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed_topics = self._find_subscribed_topics()
        self.enter(COMPLETING if self.members else EMPTY, now_ms)
        self.pending_syncs.clear()

    # --- topics

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == consumer_protocol.PROTOCOL_TYPE

    def is_subscribed(self, topic: str) -> bool:
        """Returns whether the offsets of this topic are in use."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def _find_subscribed_topics(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        said = self.subscriptions
        if sum(map(len, said)) > MAX_READ_BYTES:
            return None
        try:
            return frozenset(topic for metadata in said for topic in consumer_protocol.read_topics(metadata))
        except consumer_protocol.ConsumerProtocolError:
            return None

    def refresh_subscribed_topics(self) -> None:
        """Recompute the subscribed topics after members were added without a new generation."""
        self.subscribed_topics = self._find_subscribed_topics()

    # --- offsets

    def check_commit(self, member_id: str, instance_id: str | None, generation_id: int, transactional: bool) -> None:
        """Raises an error, as the table of states says, if this member may not commit."""
        state = self.state
        if state is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_id < 0 and state is EMPTY:
            return
        if generation_id >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation_id != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and not self.is_empty:
            # A transactional commit without a member id (from a producer before KIP-447) is accepted.
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and state is COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_offset_delete(self) -> None:
        """Raises an error if offsets may not be deleted. A group with members may lose offsets only if its
        subscriptions are known."""
        if self.state is DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if not self.is_empty and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """Raises an error unless the group is empty."""
        if self.state is DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_expiry_base(self, commit_ms: int) -> int | None:
        """Returns the time from which an offset's retention counts, or None if it does not expire now (KIP-211)."""
        if self.protocol_type is None:
            return commit_ms
        if self.is_empty:
            return commit_ms if self.state_ms < 0 else self.state_ms
        if self.uses_consumer_protocol and self.subscribed_topics is not None and self.state is STABLE:
            return commit_ms
        return None

    # --- records

    def record(self, assignments: Mapping[str, bytes]) -> Record:
        """The group's record with these assignments by member id."""
        key = GroupMetadataKey(group=self.group_id)
        written = self.record_value(self.state_ms, assignments)
        if written is not None:
            return GroupRecord(key, written, self.generation_id, self.protocol, len(self.members))
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol,
            leader=self.leader_id,
            current_state_timestamp=self.state_ms,
            members=self.rows_of_record(MemberMetadata, assignments),
        )
        return Record(key, value, GROUP_METADATA_VERSION)

    def empty_generation_record(self, now_ms: int) -> Record:
        """The group's record with its next generation, which has no members."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id + 1,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
        )
        return Record(GroupMetadataKey(group=self.group_id), value, GROUP_METADATA_VERSION)

    def empty_record(self) -> Record:
        """The record of a group without a generation."""
        value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=self.state_ms)
        return Record(GroupMetadataKey(group=self.group_id), value, GROUP_METADATA_VERSION)

    def tombstones(self) -> list[Record]:
        """The tombstones that remove the group, without those of its offsets."""
        return [Record(GroupMetadataKey(group=self.group_id))]

    @classmethod
    def replay(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """Build the group from its latest record."""
        from kafka_shim.group.client import Client

        group = cls(group_id, value.current_state_timestamp, STABLE if value.members else EMPTY)
        group.generation_id = value.generation
        group.protocol = value.protocol
        for found in value.members:
            member = ClassicMember(
                found.member_id,
                found.group_instance_id,
                Client(found.client_id, found.client_host),
                found.session_timeout if found.rebalance_timeout == -1 else found.rebalance_timeout,
                found.session_timeout,
                [(value.protocol or "", bytes(found.subscription))],
                bytes(found.assignment),
            )
            group.add(member, value.protocol_type)
        group.protocol_type = value.protocol_type or None
        group.leader_id = value.leader
        group.refresh_subscribed_topics()
        return group

"""A share group (KIP-932): its members, epochs, target assignment, and the share partitions that have a state.

Every change that a record carries is made by the record handlers of `share_kind`. The rules are in `share_heartbeat`
and `share_offsets`. A group is Empty without members, else Stable.

A topic-partition is *initialising* from the heartbeat that first subscribes to its topic until the share coordinator
has a state for it, then *initialised*: only then it is assigned to members. A topic is *deleting* while its states are
removed by DeleteShareGroupOffsets or DeleteGroups. All three are in one record, ShareGroupStatePartitionMetadata.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.consumer import add_count
from kafka_shim.group.modern_group import ModernGroup
from kafka_shim.group.records import Record
from kafka_shim.java_order import order_ints, order_uuids
from kafka_shim.protocol.records.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kafka_shim.protocol.records.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kafka_shim.protocol.records.share_group_metadata_key import ShareGroupMetadataKey
from kafka_shim.protocol.records.share_group_metadata_value import ShareGroupMetadataValue
from kafka_shim.protocol.records.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_shim.protocol.records.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from kafka_shim.protocol.records.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kafka_shim.protocol.records.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_shim.protocol.records.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kafka_shim.protocol.records.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from kafka_shim.group.consumer_member import Partitions
    from kafka_shim.group.share_member import ShareMember

# The name that Kafka writes for a topic which does not exist any more.
UNKNOWN_TOPIC_NAME = "<UNKNOWN>"


class TopicStates:
    """The partitions of one topic that have a state, or get one, and the topic's name. Never changed in place."""

    __slots__ = ("name", "partitions")

    def __init__(self, name: str, partitions: Iterable[int]) -> None:
        self.name = name
        self.partitions = frozenset(partitions)


# By topic id.
States = dict[bytes, TopicStates]


def combine(first: States, second: States) -> States:
    """Returns the partitions of both, with the names of the second."""
    combined = dict(first)
    for topic_id, found in second.items():
        known = first.get(topic_id)
        combined[topic_id] = found if known is None else TopicStates(found.name, known.partitions | found.partitions)
    return combined


class Altered:
    """A group whose offsets are altered, as long as it is not removed. Its `ShareGroup` is another object after its
    partition was read again."""


class ShareGroup(ModernGroup["ShareMember"]):
    """One group. Owned by `Groups`."""

    TYPE: Literal["share"] = "share"

    __slots__ = (
        "_has_unassigned",
        "assignment_epoch",
        "assignment_ms",
        "deleting",
        "group_epoch",
        "group_id",
        "has_states_record",
        "initialized",
        "initializing",
        "initializing_ms",
        "members",
        "metadata_hash",
        "refresh_deadline_ms",
        "refresh_epoch",
        "target",
        "topic_counts",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        # --- from records
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        # When the target was computed; 0: never, or unknown.
        self.assignment_ms = 0
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Partitions] = {}
        # Whether there is a record of the next three; they may all be empty.
        self.has_states_record = False
        self.initializing: States = {}
        self.initialized: States = {}
        self.deleting: frozenset[bytes] = frozenset()
        # --- follows from the above: the number of members by subscribed topic
        self.topic_counts: dict[str, int] = {}
        # --- memory: when the topics are looked at again, the epoch that decision belongs to, when topics began to be
        # initialised, and whether an initialised partition has no member (None: to be found out)
        self.refresh_deadline_ms = 0
        self.refresh_epoch = 0
        self.initializing_ms: dict[bytes, int] = {}
        self._has_unassigned: bool | None = None

    # --- questions

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def protocol_type(self) -> str:
        return "share"

    def is_subscribed(self, topic: str) -> bool:
        """Returns whether a member reads this topic."""
        return topic in self.topic_counts

    def needs_refresh(self, now_ms: int) -> bool:
        """Returns whether the topics must be checked for changes."""
        return now_ms >= self.refresh_deadline_ms or self.group_epoch < self.refresh_epoch

    @property
    def has_unassigned(self) -> bool:
        """Returns whether a subscribed topic has initialised partitions that are not those of the target."""
        if self._has_unassigned is None:
            self._has_unassigned = self._find_unassigned()
        return self._has_unassigned

    def _find_unassigned(self) -> bool:
        if not self.members or not self.initialized:
            return False
        assigned: Partitions = {}
        for target in self.target.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            states.name in self.topic_counts and assigned.get(topic_id, set()) != set(states.partitions)
            for topic_id, states in self.initialized.items()
        )

    # --- offsets, which a share group has not

    def check_offset_delete(self) -> None:
        """Raises GROUP_ID_NOT_FOUND."""
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        """Raises NON_EMPTY_GROUP if the group has members."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def offset_expiry_base(self, commit_ms: int) -> int | None:
        """Returns None: there is nothing that expires."""
        return None

    # --- records

    def epoch_record(self, epoch: int, metadata_hash: int) -> Record:
        """The record of a new group epoch."""
        value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        return Record(ShareGroupMetadataKey(group_id=self.group_id), value)

    def target_record(self, member_id: str, partitions: Partitions) -> Record:
        """The record of a member's target."""
        value = ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=order_ints(partitions[topic_id]))
                for topic_id in order_uuids(partitions)
            ]
        )
        return Record(ShareGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id), value)

    def target_epoch_record(self, epoch: int, computed_ms: int) -> Record:
        """The record that completes the targets of an epoch."""
        value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=computed_ms)
        return Record(ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)

    def states_record(self, initializing: States, initialized: States, deleting: Mapping[bytes, str]) -> Record:
        """The record of which share partitions have a state."""
        value = ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(initializing),
            initialized_topics=_infos(initialized),
            deleting_topics=[
                TopicInfo(topic_id=topic_id, topic_name=deleting[topic_id]) for topic_id in order_uuids(deleting)
            ],
        )
        return Record(ShareGroupStatePartitionMetadataKey(group_id=self.group_id), value)

    def member_tombstones(self, member_id: str) -> list[Record]:
        """The tombstones that remove a member, in the order that replay needs."""
        return [
            Record(ShareGroupCurrentMemberAssignmentKey(group_id=self.group_id, member_id=member_id)),
            Record(ShareGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id)),
            Record(ShareGroupMemberMetadataKey(group_id=self.group_id, member_id=member_id)),
        ]

    def tombstones(self) -> list[Record]:
        """The tombstones that remove the group, which has no members."""
        return [
            Record(ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id)),
            Record(ShareGroupStatePartitionMetadataKey(group_id=self.group_id)),
            Record(ShareGroupMetadataKey(group_id=self.group_id)),
        ]

    # --- changes

    def set_refresh(self, deadline_ms: int, epoch: int) -> None:
        """The topics need no check until the deadline, provided that the group reaches this epoch."""
        self.refresh_deadline_ms = deadline_ms
        self.refresh_epoch = epoch

    def put_member(self, member: ShareMember) -> None:
        """Add or replace a member."""
        self.drop_member(member.member_id, will_return=True)
        for topic in member.subscribed_topics:
            add_count(self.topic_counts, topic, 1)
        self.members[member.member_id] = member
        self._has_unassigned = None

    def drop_member(self, member_id: str, will_return: bool = False) -> None:
        """Remove a member. One that will return keeps its place."""
        old = self.members.get(member_id)
        if old is None:
            return
        for topic in old.subscribed_topics:
            add_count(self.topic_counts, topic, -1)
        if not will_return:
            del self.members[member_id]
        self._has_unassigned = None

    def put_target(self, member_id: str, value: ShareGroupTargetAssignmentMemberValue | None) -> None:
        """Replace or remove a member's target."""
        if value is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = {bytes(entry.topic_id): set(entry.partitions) for entry in value.topic_partitions}
        self._has_unassigned = None

    def put_states(self, value: ShareGroupStatePartitionMetadataValue | None) -> None:
        """Replace what is known of the share partitions."""
        self.has_states_record = value is not None
        self.initializing = {} if value is None else _states(value.initializing_topics)
        self.initialized = {} if value is None else _states(value.initialized_topics)
        self.deleting = (
            frozenset() if value is None else frozenset(bytes(one.topic_id) for one in value.deleting_topics)
        )
        self.initializing_ms = {
            topic_id: since for topic_id, since in self.initializing_ms.items() if topic_id in self.initializing
        }
        self._has_unassigned = None


def _infos(states: States) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=states[topic_id].name, partitions=order_ints(states[topic_id].partitions)
        )
        for topic_id in order_uuids(states)
    ]


def _states(infos: Iterable[TopicPartitionsInfo]) -> States:
    return {bytes(info.topic_id): TopicStates(info.topic_name, info.partitions) for info in infos}

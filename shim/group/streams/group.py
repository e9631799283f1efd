"""A group of the streams protocol (KIP-1071): its members, epochs, topology and target assignment (Kafka:
StreamsGroup).

Every change that a record carries is made by `Groups.apply` and the record handlers of `kind`, for live requests and at
start-up alike. Nothing here decides: the rules are in `heartbeat`, `target` and `reconcile`.

The group epoch is bumped when members, topics or options of the assignment change. The assignment epoch follows when a
target is computed, a member's epoch when the member has given up what the target takes from it. The state is derived:

Empty: no members.
    StreamsGroupHeartbeat with epoch 0 joins; OffsetCommit with an epoch below 0 is accepted from any client.
NotReady: the topology's topics are missing or do not fit.
    A heartbeat looks at them again after they changed, and its response says what is wrong.
Assigning: the group epoch is ahead of the assignment epoch.
    The next heartbeat computes the target, after the initial delay and at most once per assignment interval.
Reconciling: a member is not STABLE in the assignment epoch.
    A heartbeat moves its member on.
Stable: all members are.
    The heartbeat response contains nothing new.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.modern_group import CommittingGroup
from kafka_shim.group.records import Record
from kafka_shim.group.streams.tasks import NO_TASKS, entries_of
from kafka_shim.protocol.records.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kafka_shim.protocol.records.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kafka_shim.protocol.records.streams_group_metadata_key import StreamsGroupMetadataKey
from kafka_shim.protocol.records.streams_group_metadata_value import LastAssignmentConfig, StreamsGroupMetadataValue
from kafka_shim.protocol.records.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey
from kafka_shim.protocol.records.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
    TaskIds,
)
from kafka_shim.protocol.records.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kafka_shim.protocol.records.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kafka_shim.protocol.records.streams_group_topology_key import StreamsGroupTopologyKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from kafka_shim.group.kind import Check
    from kafka_shim.group.streams.configured import ConfiguredTopology
    from kafka_shim.group.streams.member import StreamsMember
    from kafka_shim.group.streams.tasks import Tasks
    from kafka_shim.group.streams.topology import Topology
    from kafka_shim.protocol.messages.streams_group_heartbeat_response import EndpointToPartitions

    Task = tuple[str, int]

PROTOCOL_TYPE = "streams"


class StreamsGroup(CommittingGroup["StreamsMember"]):
    """One group. Owned by `Groups`."""

    TYPE: Literal["streams"] = "streams"

    __slots__ = (
        "active_owners",
        "assignment_configs",
        "assignment_epoch",
        "assignment_ms",
        "configured",
        "endpoint_epoch",
        "endpoints",
        "group_epoch",
        "group_id",
        "members",
        "metadata_hash",
        "refresh_deadline_ms",
        "shutdown_member_id",
        "standby_owners",
        "target",
        "topology",
        "validated_epoch",
        "warmup_owners",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        # --- from records
        self.group_epoch = 1
        self.metadata_hash = 0
        # The epoch of the topology whose topics were found to fit, or -1.
        self.validated_epoch = 0
        # Options that the last target depends on.
        self.assignment_configs: dict[str, str] = {}
        self.assignment_epoch = 1
        # When the target was computed; 0: never, or unknown.
        self.assignment_ms = 0
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, Tasks] = {}
        self.topology: Topology | None = None
        # --- follows from the above: processes by the tasks that their members have or still have to give up
        self.active_owners: dict[Task, str] = {}
        self.standby_owners: dict[Task, set[str]] = {}
        self.warmup_owners: dict[Task, set[str]] = {}
        # --- memory
        self.configured: ConfiguredTopology | None = None
        # When the topics are looked at again.
        self.refresh_deadline_ms = 0
        # The member that asked all members to stop.
        self.shutdown_member_id: str | None = None
        self.endpoint_epoch = 0
        # What was last found of each member that has an endpoint, until its records or the topology's topics change.
        self.endpoints: dict[str, EndpointToPartitions] = {}

    # --- questions

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    def target_of(self, member_id: str) -> Tasks:
        """Returns the target of a member."""
        return self.target.get(member_id, NO_TASKS)

    def is_subscribed(self, topic: str) -> bool:
        """Returns whether the offsets of this topic are in use."""
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_by_source

    def needs_topic(self, topic: str) -> bool:
        """Returns whether the topology names this topic, also as an internal one."""
        return self.topology is not None and topic in self.topology.required_topics

    # --- offsets

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, transactional: bool, version: int
    ) -> Check | None:
        """Raises an error if this member may not commit. Returns None, or a check for each partition: an older epoch is
        valid for tasks that the member has had since then."""
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch == -1 and member_id == "" and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and version < 9:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the streams group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _stale(f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}.")
        if self.topology is None:
            raise _stale("Topology is not available for offset commit validation.")
        by_source = self.topology.subtopology_by_source

        def check(topic: str, topic_id: bytes, partition: int) -> None:
            subtopology = by_source.get(topic)
            if subtopology is None:
                raise _stale(f"Topic {topic} is not in the topology.")
            since = member.assigned.active.get(subtopology, {}).get(partition)
            if since is None:
                since = member.pending_revocation.active.get(subtopology, {}).get(partition)
            if since is None:
                raise _stale(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")
            if epoch < since:
                raise _stale(
                    f"Received member epoch {epoch} is older than assignment epoch {since} for task "
                    f"{subtopology}-{partition}."
                )

        return check

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check the member that OffsetFetch v9+ names. A request without a member is not checked. Raises
        UNKNOWN_MEMBER_ID, and STALE_MEMBER_EPOCH for another epoch."""
        member = self.reader(member_id, epoch)
        if member is not None and epoch != member.member_epoch:
            raise _stale(
                f"The received member epoch {epoch} does not match the expected member epoch {member.member_epoch}."
            )

    # --- records

    def epoch_record(self, epoch: int, metadata_hash: int, validated_epoch: int, configs: dict[str, str]) -> Record:
        """The record of a new group epoch."""
        value = StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_epoch,
            last_assignment_configs=[LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)],
        )
        return Record(StreamsGroupMetadataKey(group_id=self.group_id), value)

    def target_record(self, member_id: str, tasks: Tasks) -> Record:
        """The record of a member's target."""
        value = StreamsGroupTargetAssignmentMemberValue(
            active_tasks=entries_of(TaskIds, tasks.active),
            standby_tasks=entries_of(TaskIds, tasks.standby),
            warmup_tasks=entries_of(TaskIds, tasks.warmup),
        )
        return Record(StreamsGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id), value)

    def target_epoch_record(self, epoch: int, now_ms: int) -> Record:
        """The record that ends a new target."""
        value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
        return Record(StreamsGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)

    def member_tombstones(self, member_id: str) -> list[Record]:
        """The tombstones of one member."""
        group_id = self.group_id
        return [
            Record(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
            Record(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
            Record(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
        ]

    def tombstones(self) -> list[Record]:
        """The tombstones that remove the group, without those of its offsets. It is empty."""
        group_id = self.group_id
        return [
            Record(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)),
            Record(StreamsGroupMetadataKey(group_id=group_id)),
            Record(StreamsGroupTopologyKey(group_id=group_id)),
        ]

    # --- what records change

    def put_member(self, member: StreamsMember) -> None:
        """Add or replace a member."""
        self._release(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.endpoints.pop(member.member_id, None)
        for held in (member.assigned, member.pending_revocation):
            for name, epochs in held.active.items():
                self.active_owners.update(((name, number), member.process_id) for number in epochs)
            for tasks, owners in ((held.standby, self.standby_owners), (held.warmup, self.warmup_owners)):
                for name, numbers in tasks.items():
                    for number in numbers:
                        owners.setdefault((name, number), set()).add(member.process_id)

    def drop_member(self, member_id: str) -> None:
        """Remove a member. Does nothing if it is not known."""
        self._release(self.members.pop(member_id, None))
        self.endpoints.pop(member_id, None)
        if not self.members:
            self.shutdown_member_id = None

    def _release(self, member: StreamsMember | None) -> None:
        if member is None:
            return
        process_id = member.process_id
        for held in (member.assigned, member.pending_revocation):
            for name, epochs in held.active.items():
                for number in epochs:
                    # Another process may have the task by now.
                    if self.active_owners.get((name, number)) == process_id:
                        del self.active_owners[name, number]
            for tasks, owners in ((held.standby, self.standby_owners), (held.warmup, self.warmup_owners)):
                for name, numbers in tasks.items():
                    for number in numbers:
                        processes = owners.get((name, number))
                        if processes is not None:
                            processes.discard(process_id)
                            if not processes:
                                del owners[name, number]


def _stale(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH, reason)

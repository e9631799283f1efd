"""The records of a consumer group in `__consumer_offsets` (Kafka: GroupCoordinatorRecordHelpers)."""

from __future__ import annotations

from kafka_shim.group.records import Record
from kafka_shim.protocol.records.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kafka_shim.protocol.records.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_shim.protocol.records.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_shim.protocol.records.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kafka_shim.protocol.records.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kafka_shim.protocol.records.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kafka_shim.protocol.records.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from kafka_shim.protocol.records.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_shim.protocol.records.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kafka_shim.protocol.records.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.consumer import Resolved
    from kafka_shim.group.consumer_member import ConsumerMember, Partitions


class ConsumerGroupRecords:
    """What a ConsumerGroup writes. Changes nothing."""

    __slots__ = ()

    group_id: str
    group_epoch: int
    metadata_hash: int
    assignment_epoch: int
    assignment_ms: int
    members: dict[str, ConsumerMember]
    target: dict[str, Partitions]
    resolved: dict[str, Resolved]

    def epoch_record(self, epoch: int, metadata_hash: int) -> Record:
        """The record of a new group epoch."""
        value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        return Record(ConsumerGroupMetadataKey(group_id=self.group_id), value)

    def target_record(self, member_id: str, partitions: Partitions) -> Record:
        """The record of a member's target."""
        value = ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=list(found)) for topic_id, found in partitions.items()
            ]
        )
        return Record(ConsumerGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id), value)

    def target_epoch_record(self, epoch: int, computed_ms: int) -> Record:
        """The record that completes the targets of an epoch."""
        value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=computed_ms)
        return Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)

    def member_tombstones(self, member_id: str) -> list[Record]:
        """The tombstones that remove a member, in the order that replay needs."""
        return [
            Record(ConsumerGroupCurrentMemberAssignmentKey(group_id=self.group_id, member_id=member_id)),
            Record(ConsumerGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id)),
            Record(ConsumerGroupMemberMetadataKey(group_id=self.group_id, member_id=member_id)),
        ]

    def regex_tombstone(self, regex: str) -> Record:
        """The tombstone of a regular expression."""
        return Record(ConsumerGroupRegularExpressionKey(group_id=self.group_id, regular_expression=regex))

    def partition_metadata_tombstone(self) -> Record:
        """The tombstone of the record that Kafka before 4.0 wrote."""
        return Record(ConsumerGroupPartitionMetadataKey(group_id=self.group_id))

    def tombstones(self, renamed: dict[str, str] | None = None) -> list[Record]:
        """The tombstones that remove the group, without those of its offsets. `renamed`: member ids under which members
        were just written."""
        group_id = self.group_id
        ids = [(renamed or {}).get(member_id, member_id) for member_id in self.members]
        return [
            *(Record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=each)) for each in ids),
            *(Record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=each)) for each in ids),
            Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
            *(Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=each)) for each in ids),
            *(self.regex_tombstone(regex) for regex in self.resolved),
            self.partition_metadata_tombstone(),
            Record(ConsumerGroupMetadataKey(group_id=group_id)),
        ]

    def all_records(self) -> list[Record]:
        """The records that build this group from nothing."""
        members = list(self.members.values())
        return [
            *(member.metadata_record(self.group_id) for member in members),
            self.epoch_record(self.group_epoch, self.metadata_hash),
            *(self.target_record(member.member_id, self.target.get(member.member_id, {})) for member in members),
            self.target_epoch_record(self.assignment_epoch, self.assignment_ms),
            *(member.assignment_record(self.group_id) for member in members),
        ]

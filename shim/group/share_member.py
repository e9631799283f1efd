"""One immutable member of a share group (KIP-932). Rules create changed copies, records carry them, `apply` stores
them."""

from __future__ import annotations

from kafka_shim.group.records import Record
from kafka_shim.java_order import order_ints, order_uuids
from kafka_shim.protocol.records.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kafka_shim.protocol.records.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kafka_shim.protocol.records.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kafka_shim.protocol.records.share_group_member_metadata_value import ShareGroupMemberMetadataValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.group.consumer_member import Partitions

LEAVE_EPOCH = -1

_FIELDS = (
    "assigned",
    "client_host",
    "client_id",
    "member_epoch",
    "member_id",
    "previous_epoch",
    "rack_id",
    "state",
    "subscribed_topics",
)


class ShareMember:
    """`state` is what the record of the assignment stores; share groups know only 0, stable. `assigned` is never
    changed in place."""

    __slots__ = _FIELDS

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        # --- what the member says
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.subscribed_topics: frozenset[str] = frozenset()
        # --- what the coordinator decided
        self.member_epoch = 0
        self.previous_epoch = -1
        self.state = 0
        self.assigned: Partitions = {}

    def copy(self, **changes: Any) -> ShareMember:
        """Returns a copy with these fields changed."""
        new = ShareMember(self.member_id)
        for name in _FIELDS:
            setattr(new, name, changes.get(name, getattr(self, name)))
        return new

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShareMember) and all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    __hash__ = None  # type: ignore[assignment]

    # --- records

    def metadata_record(self, group_id: str) -> Record:
        """The record of what the member sent."""
        value = ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.subscribed_topics),
        )
        return Record(ShareGroupMemberMetadataKey(group_id=group_id, member_id=self.member_id), value)

    def assignment_record(self, group_id: str) -> Record:
        """The record of the member's current assignment."""
        value = ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=order_ints(self.assigned[topic_id]))
                for topic_id in order_uuids(self.assigned)
            ],
        )
        return Record(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.member_id), value)

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> ShareMember:
        """Returns the member with the values of its metadata record."""
        return self.copy(
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topics=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        """Returns the member with the values of its assignment record."""
        return self.copy(
            member_epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned={bytes(entry.topic_id): set(entry.partitions) for entry in value.assigned_partitions},
        )

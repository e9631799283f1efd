"""ConsumerGroupCurrentMemberAssignmentValue, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions", "assignment_epochs")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]int32", "0+", ()),
        ("assignment_epochs", "[]int32", "0+", (), "0+", False, 0, "0+"),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
        assignment_epochs: list[int] | None = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs
        self.unknown_tags = None


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    __slots__ = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "assigned_partitions",
        "partitions_pending_revocation",
    )
    API_KEY = 8
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("member_epoch", "int32", "0+", 0),
        ("previous_member_epoch", "int32", "0+", 0),
        ("state", "int8", "0+", 0),
        ("assigned_partitions", "[]TopicPartitions", "0+", ()),
        ("partitions_pending_revocation", "[]TopicPartitions", "0+", ()),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = EMPTY,
        partitions_pending_revocation: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.partitions_pending_revocation = (
            [] if partitions_pending_revocation is EMPTY else partitions_pending_revocation
        )
        self.unknown_tags = None

"""ConsumerGroupCurrentMemberAssignmentValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions", "assignment_epochs")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]int32", "0+", ()),
        ("assignment_epochs", "[]int32", "0+", (), "0+", False, 0, "0+"),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[int] = EMPTY
        assignment_epochs: list[int] | None = EMPTY


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

    if TYPE_CHECKING:
        member_epoch: int = 0
        previous_member_epoch: int = 0
        state: int = 0
        assigned_partitions: list[TopicPartitions] = EMPTY
        partitions_pending_revocation: list[TopicPartitions] = EMPTY

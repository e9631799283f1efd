"""ShareGroupCurrentMemberAssignmentValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[int] = EMPTY


class ShareGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("member_epoch", "int32", "0+", 0),
        ("previous_member_epoch", "int32", "0+", 0),
        ("state", "int8", "0+", 0),
        ("assigned_partitions", "[]TopicPartitions", "0+", ()),
    )

    if TYPE_CHECKING:
        member_epoch: int = 0
        previous_member_epoch: int = 0
        state: int = 0
        assigned_partitions: list[TopicPartitions] = EMPTY

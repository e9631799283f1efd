"""ConsumerProtocolAssignment, versions 0-3. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class TopicPartition(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data")
    MIN_VERSION = 0
    MAX_VERSION = 3
    FIELDS = (
        ("assigned_partitions", "[]TopicPartition", "0+", ()),
        ("user_data", "bytes", "0+", None, "0+"),
    )

    def __init__(self, *, assigned_partitions: list[TopicPartition] = EMPTY, user_data: bytes | None = None) -> None:
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data = user_data
        self.unknown_tags = None

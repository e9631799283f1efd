"""ConsumerProtocolSubscription, versions 0-3. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class TopicPartition(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "1+", ""),
        ("partitions", "[]int32", "1+", ()),
    )

    def __init__(self, *, topic: str = "", partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ConsumerProtocolSubscription(Message):
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")
    MIN_VERSION = 0
    MAX_VERSION = 3
    FIELDS = (
        ("topics", "[]string", "0+", ()),
        ("user_data", "bytes", "0+", None, "0+"),
        ("owned_partitions", "[]TopicPartition", "1+", (), "", True),
        ("generation_id", "int32", "2+", -1, "", True),
        ("rack_id", "string", "3+", None, "3+", True),
    )

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = EMPTY,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
        self.unknown_tags = None

"""ConsumerProtocolSubscription, versions 0-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TopicPartition(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "1+", ""),
        ("partitions", "[]int32", "1+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[int] = EMPTY


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

    if TYPE_CHECKING:
        topics: list[str] = EMPTY
        user_data: bytes | None = None
        owned_partitions: list[TopicPartition] = EMPTY
        generation_id: int = -1
        rack_id: str | None = None

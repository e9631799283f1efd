"""ConsumerProtocolAssignment, versions 0-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TopicPartition(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[int] = EMPTY


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data")
    MIN_VERSION = 0
    MAX_VERSION = 3
    FIELDS = (
        ("assigned_partitions", "[]TopicPartition", "0+", ()),
        ("user_data", "bytes", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        assigned_partitions: list[TopicPartition] = EMPTY
        user_data: bytes | None = None

"""ElectLeadersRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TopicPartitions(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[int] = EMPTY


class ElectLeadersRequest(Message):
    __slots__ = ("election_type", "topic_partitions", "timeout_ms")
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("election_type", "int8", "1+", 0),
        ("topic_partitions", "[]TopicPartitions", "0+", (), "0+"),
        ("timeout_ms", "int32", "0+", 60000),
    )

    if TYPE_CHECKING:
        election_type: int = 0
        topic_partitions: list[TopicPartitions] | None = EMPTY
        timeout_ms: int = 60000

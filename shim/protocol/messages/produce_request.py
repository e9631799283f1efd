"""ProduceRequest, versions 3-13. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Buffer, Message

TYPE_CHECKING = False


class PartitionProduceData(Message):
    __slots__ = ("index", "records")
    FIELDS = (
        ("index", "int32", "0+", 0),
        ("records", "records", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        index: int = 0
        records: Buffer | None = None


class TopicProduceData(Message):
    __slots__ = ("name", "topic_id", "partition_data")
    FIELDS = (
        ("name", "string", "0-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partition_data", "[]PartitionProduceData", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID
        partition_data: list[PartitionProduceData] = EMPTY


class ProduceRequest(Message):
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")
    API_KEY = 0
    MIN_VERSION = 3
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    FIELDS = (
        ("transactional_id", "string", "3+", None, "3+"),
        ("acks", "int16", "0+", 0),
        ("timeout_ms", "int32", "0+", 0),
        ("topic_data", "[]TopicProduceData", "0+", ()),
    )

    if TYPE_CHECKING:
        transactional_id: str | None = None
        acks: int = 0
        timeout_ms: int = 0
        topic_data: list[TopicProduceData] = EMPTY

"""ProduceRequest, versions 3-13. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Buffer, Message


class PartitionProduceData(Message):
    __slots__ = ("index", "records")
    FIELDS = (
        ("index", "int32", "0+", 0),
        ("records", "records", "0+", None, "0+"),
    )

    def __init__(self, *, index: int = 0, records: Buffer | None = None) -> None:
        self.index = index
        self.records = records
        self.unknown_tags = None


class TopicProduceData(Message):
    __slots__ = ("name", "topic_id", "partition_data")
    FIELDS = (
        ("name", "string", "0-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partition_data", "[]PartitionProduceData", "0+", ()),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is EMPTY else partition_data
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is EMPTY else topic_data
        self.unknown_tags = None

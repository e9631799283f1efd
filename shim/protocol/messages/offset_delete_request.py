"""OffsetDeleteRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)
    FIELDS = (("partition_index", "int32", "0+", 0),)

    if TYPE_CHECKING:
        partition_index: int = 0


class OffsetDeleteRequestTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]OffsetDeleteRequestPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[OffsetDeleteRequestPartition] = EMPTY


class OffsetDeleteRequest(Message):
    __slots__ = ("group_id", "topics")
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]OffsetDeleteRequestTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[OffsetDeleteRequestTopic] = EMPTY

"""AlterShareGroupOffsetsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AlterShareGroupOffsetsRequestPartition(Message):
    __slots__ = ("partition_index", "start_offset")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("start_offset", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        start_offset: int = 0


class AlterShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]AlterShareGroupOffsetsRequestPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY


class AlterShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics")
    API_KEY = 91
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]AlterShareGroupOffsetsRequestTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY

"""DescribeShareGroupOffsetsResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class DescribeShareGroupOffsetsResponsePartition(Message):
    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("start_offset", "int64", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
        ("lag", "int64", "1+", -1, "", True),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        start_offset: int = 0
        leader_epoch: int = 0
        lag: int = -1
        error_code: int = 0
        error_message: str | None = None


class DescribeShareGroupOffsetsResponseTopic(Message):
    __slots__ = ("topic_name", "topic_id", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]DescribeShareGroupOffsetsResponsePartition", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY


class DescribeShareGroupOffsetsResponseGroup(Message):
    __slots__ = ("group_id", "topics", "error_code", "error_message")
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]DescribeShareGroupOffsetsResponseTopic", "0+", ()),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY
        error_code: int = 0
        error_message: str | None = None


class DescribeShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 90
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("groups", "[]DescribeShareGroupOffsetsResponseGroup", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY

"""OffsetFetchResponse, versions 1-10. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class OffsetFetchResponsePartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0-7", 0),
        ("committed_offset", "int64", "0-7", 0),
        ("committed_leader_epoch", "int32", "5-7", -1, "", True),
        ("metadata", "string", "0-7", "", "0-7"),
        ("error_code", "int16", "0-7", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        metadata: str | None = ""
        error_code: int = 0


class OffsetFetchResponseTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0-7", ""),
        ("partitions", "[]OffsetFetchResponsePartition", "0-7", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[OffsetFetchResponsePartition] = EMPTY


class OffsetFetchResponsePartitions(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    FIELDS = (
        ("partition_index", "int32", "8+", 0),
        ("committed_offset", "int64", "8+", 0),
        ("committed_leader_epoch", "int32", "8+", -1, "", True),
        ("metadata", "string", "8+", "", "8+"),
        ("error_code", "int16", "8+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        metadata: str | None = ""
        error_code: int = 0


class OffsetFetchResponseTopics(Message):
    __slots__ = ("name", "topic_id", "partitions")
    FIELDS = (
        ("name", "string", "8-9", "", "", True),
        ("topic_id", "uuid", "10+", ZERO_UUID, "", True),
        ("partitions", "[]OffsetFetchResponsePartitions", "8+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[OffsetFetchResponsePartitions] = EMPTY


class OffsetFetchResponseGroup(Message):
    __slots__ = ("group_id", "topics", "error_code")
    FIELDS = (
        ("group_id", "string", "8+", ""),
        ("topics", "[]OffsetFetchResponseTopics", "8+", ()),
        ("error_code", "int16", "8+", 0),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[OffsetFetchResponseTopics] = EMPTY
        error_code: int = 0


class OffsetFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups")
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_FROM = 6
    FIELDS = (
        ("throttle_time_ms", "int32", "3+", 0, "", True),
        ("topics", "[]OffsetFetchResponseTopic", "0-7", ()),
        ("error_code", "int16", "2-7", 0, "", True),
        ("groups", "[]OffsetFetchResponseGroup", "8+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[OffsetFetchResponseTopic] = EMPTY
        error_code: int = 0
        groups: list[OffsetFetchResponseGroup] = EMPTY

"""OffsetCommitRequest, versions 2-10. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class OffsetCommitRequestPartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("committed_offset", "int64", "0+", 0),
        ("committed_leader_epoch", "int32", "6+", -1, "", True),
        ("committed_metadata", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        committed_metadata: str | None = ""


class OffsetCommitRequestTopic(Message):
    __slots__ = ("name", "topic_id", "partitions")
    FIELDS = (
        ("name", "string", "0-9", "", "", True),
        ("topic_id", "uuid", "10+", ZERO_UUID, "", True),
        ("partitions", "[]OffsetCommitRequestPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[OffsetCommitRequestPartition] = EMPTY


class OffsetCommitRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_FROM = 8
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("generation_id_or_member_epoch", "int32", "1+", -1, "", True),
        ("member_id", "string", "1+", "", "", True),
        ("group_instance_id", "string", "7+", None, "7+"),
        ("retention_time_ms", "int64", "2-4", -1, "", True),
        ("topics", "[]OffsetCommitRequestTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        generation_id_or_member_epoch: int = -1
        member_id: str = ""
        group_instance_id: str | None = None
        retention_time_ms: int = -1
        topics: list[OffsetCommitRequestTopic] = EMPTY

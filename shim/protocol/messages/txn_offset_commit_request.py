"""TxnOffsetCommitRequest, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TxnOffsetCommitRequestPartition(Message):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("committed_offset", "int64", "0+", 0),
        ("committed_leader_epoch", "int32", "2+", -1, "", True),
        ("committed_metadata", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        committed_offset: int = 0
        committed_leader_epoch: int = -1
        committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]TxnOffsetCommitRequestPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[TxnOffsetCommitRequestPartition] = EMPTY


class TxnOffsetCommitRequest(Message):
    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )
    API_KEY = 28
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("transactional_id", "string", "0+", ""),
        ("group_id", "string", "0+", ""),
        ("producer_id", "int64", "0+", 0),
        ("producer_epoch", "int16", "0+", 0),
        ("generation_id", "int32", "3+", -1),
        ("member_id", "string", "3+", ""),
        ("group_instance_id", "string", "3+", None, "3+"),
        ("topics", "[]TxnOffsetCommitRequestTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        transactional_id: str = ""
        group_id: str = ""
        producer_id: int = 0
        producer_epoch: int = 0
        generation_id: int = -1
        member_id: str = ""
        group_instance_id: str | None = None
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY

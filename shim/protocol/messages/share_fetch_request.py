"""ShareFetchRequest, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class AcknowledgementBatch(Message):
    __slots__ = ("first_offset", "last_offset", "acknowledge_types")
    FIELDS = (
        ("first_offset", "int64", "0+", 0),
        ("last_offset", "int64", "0+", 0),
        ("acknowledge_types", "[]int8", "0+", ()),
    )

    if TYPE_CHECKING:
        first_offset: int = 0
        last_offset: int = 0
        acknowledge_types: list[int] = EMPTY


class FetchPartition(Message):
    __slots__ = ("partition_index", "partition_max_bytes", "acknowledgement_batches")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("partition_max_bytes", "int32", "0", 0),
        ("acknowledgement_batches", "[]AcknowledgementBatch", "0+", ()),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        partition_max_bytes: int = 0
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY


class FetchTopic(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]FetchPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[FetchPartition] = EMPTY


class ForgottenTopic(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[int] = EMPTY


class ShareFetchRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )
    API_KEY = 78
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", None, "0+"),
        ("member_id", "string", "0+", "", "0+"),
        ("share_session_epoch", "int32", "0+", 0),
        ("max_wait_ms", "int32", "0+", 0),
        ("min_bytes", "int32", "0+", 0),
        ("max_bytes", "int32", "0+", 2147483647),
        ("max_records", "int32", "1+", 0),
        ("batch_size", "int32", "1+", 0),
        ("share_acquire_mode", "int8", "2+", 0, "", True),
        ("is_renew_ack", "bool", "2+", False),
        ("topics", "[]FetchTopic", "0+", ()),
        ("forgotten_topics_data", "[]ForgottenTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str | None = None
        member_id: str | None = ""
        share_session_epoch: int = 0
        max_wait_ms: int = 0
        min_bytes: int = 0
        max_bytes: int = 2147483647
        max_records: int = 0
        batch_size: int = 0
        share_acquire_mode: int = 0
        is_renew_ack: bool = False
        topics: list[FetchTopic] = EMPTY
        forgotten_topics_data: list[ForgottenTopic] = EMPTY

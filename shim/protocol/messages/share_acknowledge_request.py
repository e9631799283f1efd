"""ShareAcknowledgeRequest, versions 1-2. Written by transcribe.py: change nothing here."""

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


class AcknowledgePartition(Message):
    __slots__ = ("partition_index", "acknowledgement_batches")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("acknowledgement_batches", "[]AcknowledgementBatch", "0+", ()),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY


class AcknowledgeTopic(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]AcknowledgePartition", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[AcknowledgePartition] = EMPTY


class ShareAcknowledgeRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")
    API_KEY = 79
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", None, "0+"),
        ("member_id", "string", "0+", "", "0+"),
        ("share_session_epoch", "int32", "0+", 0),
        ("is_renew_ack", "bool", "2+", False),
        ("topics", "[]AcknowledgeTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str | None = None
        member_id: str | None = ""
        share_session_epoch: int = 0
        is_renew_ack: bool = False
        topics: list[AcknowledgeTopic] = EMPTY

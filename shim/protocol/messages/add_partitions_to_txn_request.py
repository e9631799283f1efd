"""AddPartitionsToTxnRequest, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AddPartitionsToTxnTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[int] = EMPTY


class AddPartitionsToTxnTransaction(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")
    FIELDS = (
        ("transactional_id", "string", "4+", ""),
        ("producer_id", "int64", "4+", 0),
        ("producer_epoch", "int16", "4+", 0),
        ("verify_only", "bool", "4+", False),
        ("topics", "[]AddPartitionsToTxnTopic", "4+", ()),
    )

    if TYPE_CHECKING:
        transactional_id: str = ""
        producer_id: int = 0
        producer_epoch: int = 0
        verify_only: bool = False
        topics: list[AddPartitionsToTxnTopic] = EMPTY


class AddPartitionsToTxnRequest(Message):
    __slots__ = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )
    API_KEY = 24
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("transactions", "[]AddPartitionsToTxnTransaction", "4+", ()),
        ("v3_and_below_transactional_id", "string", "0-3", ""),
        ("v3_and_below_producer_id", "int64", "0-3", 0),
        ("v3_and_below_producer_epoch", "int16", "0-3", 0),
        ("v3_and_below_topics", "[]AddPartitionsToTxnTopic", "0-3", ()),
    )

    if TYPE_CHECKING:
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY
        v3_and_below_transactional_id: str = ""
        v3_and_below_producer_id: int = 0
        v3_and_below_producer_epoch: int = 0
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY

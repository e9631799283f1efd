"""AddPartitionsToTxnResponse, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AddPartitionsToTxnPartitionResult(Message):
    __slots__ = ("partition_index", "partition_error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("partition_error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(Message):
    __slots__ = ("name", "results_by_partition")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("results_by_partition", "[]AddPartitionsToTxnPartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY


class AddPartitionsToTxnResult(Message):
    __slots__ = ("transactional_id", "topic_results")
    FIELDS = (
        ("transactional_id", "string", "4+", ""),
        ("topic_results", "[]AddPartitionsToTxnTopicResult", "4+", ()),
    )

    if TYPE_CHECKING:
        transactional_id: str = ""
        topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY


class AddPartitionsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below")
    API_KEY = 24
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "4+", 0, "", True),
        ("results_by_transaction", "[]AddPartitionsToTxnResult", "4+", ()),
        ("results_by_topic_v3_and_below", "[]AddPartitionsToTxnTopicResult", "0-3", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY

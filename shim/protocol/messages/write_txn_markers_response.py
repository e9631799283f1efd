"""WriteTxnMarkersResponse, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class WritableTxnMarkerPartitionResult(Message):
    __slots__ = ("partition_index", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0


class WritableTxnMarkerTopicResult(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]WritableTxnMarkerPartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[WritableTxnMarkerPartitionResult] = EMPTY


class WritableTxnMarkerResult(Message):
    __slots__ = ("producer_id", "topics")
    FIELDS = (
        ("producer_id", "int64", "0+", 0),
        ("topics", "[]WritableTxnMarkerTopicResult", "0+", ()),
    )

    if TYPE_CHECKING:
        producer_id: int = 0
        topics: list[WritableTxnMarkerTopicResult] = EMPTY


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)
    API_KEY = 27
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 1
    FIELDS = (("markers", "[]WritableTxnMarkerResult", "0+", ()),)

    if TYPE_CHECKING:
        markers: list[WritableTxnMarkerResult] = EMPTY

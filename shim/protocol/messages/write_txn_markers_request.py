"""WriteTxnMarkersRequest, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class WritableTxnMarkerTopic(Message):
    __slots__ = ("name", "partition_indexes")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partition_indexes", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partition_indexes: list[int] = EMPTY


class WritableTxnMarker(Message):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )
    FIELDS = (
        ("producer_id", "int64", "0+", 0),
        ("producer_epoch", "int16", "0+", 0),
        ("transaction_result", "bool", "0+", False),
        ("topics", "[]WritableTxnMarkerTopic", "0+", ()),
        ("coordinator_epoch", "int32", "0+", 0),
        ("transaction_version", "int8", "2+", 0, "", True),
    )

    if TYPE_CHECKING:
        producer_id: int = 0
        producer_epoch: int = 0
        transaction_result: bool = False
        topics: list[WritableTxnMarkerTopic] = EMPTY
        coordinator_epoch: int = 0
        transaction_version: int = 0


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers",)
    API_KEY = 27
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 1
    FIELDS = (("markers", "[]WritableTxnMarker", "0+", ()),)

    if TYPE_CHECKING:
        markers: list[WritableTxnMarker] = EMPTY

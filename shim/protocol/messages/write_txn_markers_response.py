"""WriteTxnMarkersResponse, versions 1-2. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class WritableTxnMarkerPartitionResult(Message):
    __slots__ = ("partition_index", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = None


class WritableTxnMarkerTopicResult(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]WritableTxnMarkerPartitionResult", "0+", ()),
    )

    def __init__(self, *, name: str = "", partitions: list[WritableTxnMarkerPartitionResult] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class WritableTxnMarkerResult(Message):
    __slots__ = ("producer_id", "topics")
    FIELDS = (
        ("producer_id", "int64", "0+", 0),
        ("topics", "[]WritableTxnMarkerTopicResult", "0+", ()),
    )

    def __init__(self, *, producer_id: int = 0, topics: list[WritableTxnMarkerTopicResult] = EMPTY) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)
    API_KEY = 27
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 1
    FIELDS = (("markers", "[]WritableTxnMarkerResult", "0+", ()),)

    def __init__(self, *, markers: list[WritableTxnMarkerResult] = EMPTY) -> None:
        self.markers = [] if markers is EMPTY else markers
        self.unknown_tags = None

"""DeleteRecordsRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DeleteRecordsPartition(Message):
    __slots__ = ("partition_index", "offset")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("offset", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        offset: int = 0


class DeleteRecordsTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]DeleteRecordsPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[DeleteRecordsPartition] = EMPTY


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms")
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("topics", "[]DeleteRecordsTopic", "0+", ()),
        ("timeout_ms", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        topics: list[DeleteRecordsTopic] = EMPTY
        timeout_ms: int = 0

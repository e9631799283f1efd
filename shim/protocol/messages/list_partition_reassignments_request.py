"""ListPartitionReassignmentsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ListPartitionReassignmentsTopics(Message):
    __slots__ = ("name", "partition_indexes")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partition_indexes", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partition_indexes: list[int] = EMPTY


class ListPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "topics")
    API_KEY = 46
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("timeout_ms", "int32", "0+", 60000),
        ("topics", "[]ListPartitionReassignmentsTopics", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        timeout_ms: int = 60000
        topics: list[ListPartitionReassignmentsTopics] | None = None

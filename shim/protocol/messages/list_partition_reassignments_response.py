"""ListPartitionReassignmentsResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class OngoingPartitionReassignment(Message):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("replicas", "[]int32", "0+", ()),
        ("adding_replicas", "[]int32", "0+", ()),
        ("removing_replicas", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        replicas: list[int] = EMPTY
        adding_replicas: list[int] = EMPTY
        removing_replicas: list[int] = EMPTY


class OngoingTopicReassignment(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]OngoingPartitionReassignment", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[OngoingPartitionReassignment] = EMPTY


class ListPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")
    API_KEY = 46
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("topics", "[]OngoingTopicReassignment", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = ""
        topics: list[OngoingTopicReassignment] = EMPTY

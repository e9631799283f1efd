"""AlterPartitionReassignmentsResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ReassignablePartitionResponse(Message):
    __slots__ = ("partition_index", "error_code", "error_message")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = ""


class ReassignableTopicResponse(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]ReassignablePartitionResponse", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[ReassignablePartitionResponse] = EMPTY


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses")
    API_KEY = 45
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("allow_replication_factor_change", "bool", "1+", True, "", True),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("responses", "[]ReassignableTopicResponse", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        allow_replication_factor_change: bool = True
        error_code: int = 0
        error_message: str | None = ""
        responses: list[ReassignableTopicResponse] = EMPTY

"""CreatePartitionsRequest, versions 0-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)
    FIELDS = (("broker_ids", "[]int32", "0+", ()),)

    if TYPE_CHECKING:
        broker_ids: list[int] = EMPTY


class CreatePartitionsTopic(Message):
    __slots__ = ("name", "count", "assignments")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("count", "int32", "0+", 0),
        ("assignments", "[]CreatePartitionsAssignment", "0+", (), "0+"),
    )

    if TYPE_CHECKING:
        name: str = ""
        count: int = 0
        assignments: list[CreatePartitionsAssignment] | None = EMPTY


class CreatePartitionsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("topics", "[]CreatePartitionsTopic", "0+", ()),
        ("timeout_ms", "int32", "0+", 0),
        ("validate_only", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        topics: list[CreatePartitionsTopic] = EMPTY
        timeout_ms: int = 0
        validate_only: bool = False

"""CreatePartitionsRequest, versions 0-3. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)
    FIELDS = (("broker_ids", "[]int32", "0+", ()),)

    def __init__(self, *, broker_ids: list[int] = EMPTY) -> None:
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids
        self.unknown_tags = None


class CreatePartitionsTopic(Message):
    __slots__ = ("name", "count", "assignments")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("count", "int32", "0+", 0),
        ("assignments", "[]CreatePartitionsAssignment", "0+", (), "0+"),
    )

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = EMPTY,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is EMPTY else assignments
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tags = None

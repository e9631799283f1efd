"""StreamsGroupTargetAssignmentMemberValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TaskIds(Message):
    __slots__ = ("subtopology_id", "partitions")
    FIELDS = (
        ("subtopology_id", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        subtopology_id: str = ""
        partitions: list[int] = EMPTY


class StreamsGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("active_tasks", "[]TaskIds", "0+", ()),
        ("standby_tasks", "[]TaskIds", "0+", ()),
        ("warmup_tasks", "[]TaskIds", "0+", ()),
    )

    if TYPE_CHECKING:
        active_tasks: list[TaskIds] = EMPTY
        standby_tasks: list[TaskIds] = EMPTY
        warmup_tasks: list[TaskIds] = EMPTY

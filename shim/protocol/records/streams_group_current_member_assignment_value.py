"""StreamsGroupCurrentMemberAssignmentValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TaskIds(Message):
    __slots__ = ("subtopology_id", "partitions", "assignment_epochs")
    FIELDS = (
        ("subtopology_id", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
        ("assignment_epochs", "[]int32", "0+", (), "0+", False, 0, "0+"),
    )

    if TYPE_CHECKING:
        subtopology_id: str = ""
        partitions: list[int] = EMPTY
        assignment_epochs: list[int] | None = EMPTY


class StreamsGroupCurrentMemberAssignmentValue(Message):
    __slots__ = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "active_tasks_pending_revocation",
        "standby_tasks_pending_revocation",
        "warmup_tasks_pending_revocation",
    )
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("member_epoch", "int32", "0+", 0),
        ("previous_member_epoch", "int32", "0+", 0),
        ("state", "int8", "0+", 0),
        ("active_tasks", "[]TaskIds", "0+", ()),
        ("standby_tasks", "[]TaskIds", "0+", ()),
        ("warmup_tasks", "[]TaskIds", "0+", ()),
        ("active_tasks_pending_revocation", "[]TaskIds", "0+", ()),
        ("standby_tasks_pending_revocation", "[]TaskIds", "0+", ()),
        ("warmup_tasks_pending_revocation", "[]TaskIds", "0+", ()),
    )

    if TYPE_CHECKING:
        member_epoch: int = 0
        previous_member_epoch: int = 0
        state: int = 0
        active_tasks: list[TaskIds] = EMPTY
        standby_tasks: list[TaskIds] = EMPTY
        warmup_tasks: list[TaskIds] = EMPTY
        active_tasks_pending_revocation: list[TaskIds] = EMPTY
        standby_tasks_pending_revocation: list[TaskIds] = EMPTY
        warmup_tasks_pending_revocation: list[TaskIds] = EMPTY

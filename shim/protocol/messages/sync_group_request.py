"""SyncGroupRequest, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class SyncGroupRequestAssignment(Message):
    __slots__ = ("member_id", "assignment")
    FIELDS = (
        ("member_id", "string", "0+", ""),
        ("assignment", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        assignment: bytes = b""


class SyncGroupRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("generation_id", "int32", "0+", 0),
        ("member_id", "string", "0+", ""),
        ("group_instance_id", "string", "3+", None, "3+"),
        ("protocol_type", "string", "5+", None, "5+", True),
        ("protocol_name", "string", "5+", None, "5+", True),
        ("assignments", "[]SyncGroupRequestAssignment", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        generation_id: int = 0
        member_id: str = ""
        group_instance_id: str | None = None
        protocol_type: str | None = None
        protocol_name: str | None = None
        assignments: list[SyncGroupRequestAssignment] = EMPTY

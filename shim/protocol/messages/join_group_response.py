"""JoinGroupResponse, versions 0-9. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class JoinGroupResponseMember(Message):
    __slots__ = ("member_id", "group_instance_id", "metadata")
    FIELDS = (
        ("member_id", "string", "0+", ""),
        ("group_instance_id", "string", "5+", None, "5+", True),
        ("metadata", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        group_instance_id: str | None = None
        metadata: bytes = b""


class JoinGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_FROM = 6
    FIELDS = (
        ("throttle_time_ms", "int32", "2+", 0, "", True),
        ("error_code", "int16", "0+", 0),
        ("generation_id", "int32", "0+", -1),
        ("protocol_type", "string", "7+", None, "7+", True),
        ("protocol_name", "string", "0+", "", "7+"),
        ("leader", "string", "0+", ""),
        ("skip_assignment", "bool", "9+", False),
        ("member_id", "string", "0+", ""),
        ("members", "[]JoinGroupResponseMember", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        generation_id: int = -1
        protocol_type: str | None = None
        protocol_name: str | None = ""
        leader: str = ""
        skip_assignment: bool = False
        member_id: str = ""
        members: list[JoinGroupResponseMember] = EMPTY

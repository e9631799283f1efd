"""LeaveGroupResponse, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class MemberResponse(Message):
    __slots__ = ("member_id", "group_instance_id", "error_code")
    FIELDS = (
        ("member_id", "string", "3+", ""),
        ("group_instance_id", "string", "3+", "", "3+"),
        ("error_code", "int16", "3+", 0),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        group_instance_id: str | None = ""
        error_code: int = 0


class LeaveGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "members")
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("error_code", "int16", "0+", 0),
        ("members", "[]MemberResponse", "3+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        members: list[MemberResponse] = EMPTY

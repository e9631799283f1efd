"""LeaveGroupRequest, versions 0-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class MemberIdentity(Message):
    __slots__ = ("member_id", "group_instance_id", "reason")
    FIELDS = (
        ("member_id", "string", "3+", ""),
        ("group_instance_id", "string", "3+", None, "3+"),
        ("reason", "string", "5+", None, "5+", True),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        group_instance_id: str | None = None
        reason: str | None = None


class LeaveGroupRequest(Message):
    __slots__ = ("group_id", "member_id", "members")
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("member_id", "string", "0-2", ""),
        ("members", "[]MemberIdentity", "3+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        member_id: str = ""
        members: list[MemberIdentity] = EMPTY

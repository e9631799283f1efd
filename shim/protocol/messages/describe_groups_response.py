"""DescribeGroupsResponse, versions 0-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribedGroupMember(Message):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")
    FIELDS = (
        ("member_id", "string", "0+", ""),
        ("group_instance_id", "string", "4+", None, "4+", True),
        ("client_id", "string", "0+", ""),
        ("client_host", "string", "0+", ""),
        ("member_metadata", "bytes", "0+", b""),
        ("member_assignment", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        group_instance_id: str | None = None
        client_id: str = ""
        client_host: str = ""
        member_metadata: bytes = b""
        member_assignment: bytes = b""


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "6+", None, "6+"),
        ("group_id", "string", "0+", ""),
        ("group_state", "string", "0+", ""),
        ("protocol_type", "string", "0+", ""),
        ("protocol_data", "string", "0+", ""),
        ("members", "[]DescribedGroupMember", "0+", ()),
        ("authorized_operations", "int32", "3+", -2147483648),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        protocol_type: str = ""
        protocol_data: str = ""
        members: list[DescribedGroupMember] = EMPTY
        authorized_operations: int = -2147483648


class DescribeGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("groups", "[]DescribedGroup", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        groups: list[DescribedGroup] = EMPTY

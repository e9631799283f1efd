"""GroupMetadataValue, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class MemberMetadata(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "rebalance_timeout",
        "session_timeout",
        "subscription",
        "assignment",
    )
    FIELDS = (
        ("member_id", "string", "0+", ""),
        ("group_instance_id", "string", "3+", None, "3+", True),
        ("client_id", "string", "0+", ""),
        ("client_host", "string", "0+", ""),
        ("rebalance_timeout", "int32", "1+", -1, "", True),
        ("session_timeout", "int32", "0+", 0),
        ("subscription", "bytes", "0+", b""),
        ("assignment", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        group_instance_id: str | None = None
        client_id: str = ""
        client_host: str = ""
        rebalance_timeout: int = -1
        session_timeout: int = 0
        subscription: bytes = b""
        assignment: bytes = b""


class GroupMetadataValue(Message):
    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members")
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("protocol_type", "string", "0+", ""),
        ("generation", "int32", "0+", 0),
        ("protocol", "string", "0+", "", "0+"),
        ("leader", "string", "0+", "", "0+"),
        ("current_state_timestamp", "int64", "2+", -1, "", True),
        ("members", "[]MemberMetadata", "0+", ()),
    )

    if TYPE_CHECKING:
        protocol_type: str = ""
        generation: int = 0
        protocol: str | None = ""
        leader: str | None = ""
        current_state_timestamp: int = -1
        members: list[MemberMetadata] = EMPTY

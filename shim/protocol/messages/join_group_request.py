"""JoinGroupRequest, versions 0-9. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class JoinGroupRequestProtocol(Message):
    __slots__ = ("name", "metadata")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("metadata", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        name: str = ""
        metadata: bytes = b""


class JoinGroupRequest(Message):
    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_FROM = 6
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("session_timeout_ms", "int32", "0+", 0),
        ("rebalance_timeout_ms", "int32", "1+", -1, "", True),
        ("member_id", "string", "0+", ""),
        ("group_instance_id", "string", "5+", None, "5+"),
        ("protocol_type", "string", "0+", ""),
        ("protocols", "[]JoinGroupRequestProtocol", "0+", ()),
        ("reason", "string", "8+", None, "8+", True),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        session_timeout_ms: int = 0
        rebalance_timeout_ms: int = -1
        member_id: str = ""
        group_instance_id: str | None = None
        protocol_type: str = ""
        protocols: list[JoinGroupRequestProtocol] = EMPTY
        reason: str | None = None

"""HeartbeatRequest, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class HeartbeatRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("generation_id", "int32", "0+", 0),
        ("member_id", "string", "0+", ""),
        ("group_instance_id", "string", "3+", None, "3+"),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        generation_id: int = 0
        member_id: str = ""
        group_instance_id: str | None = None

"""ShareGroupHeartbeatRequest, version 1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ShareGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names")
    API_KEY = 76
    MIN_VERSION = 1
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("member_id", "string", "0+", ""),
        ("member_epoch", "int32", "0+", 0),
        ("rack_id", "string", "0+", None, "0+"),
        ("subscribed_topic_names", "[]string", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        member_id: str = ""
        member_epoch: int = 0
        rack_id: str | None = None
        subscribed_topic_names: list[str] | None = None

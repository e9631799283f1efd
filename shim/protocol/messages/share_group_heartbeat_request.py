"""ShareGroupHeartbeatRequest, version 1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


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

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
        self.unknown_tags = None

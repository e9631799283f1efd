"""ShareGroupMemberMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ShareGroupMemberMetadataValue(Message):
    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names")
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("rack_id", "string", "0+", "", "0+"),
        ("client_id", "string", "0+", ""),
        ("client_host", "string", "0+", ""),
        ("subscribed_topic_names", "[]string", "0+", ()),
    )

    if TYPE_CHECKING:
        rack_id: str | None = ""
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: list[str] = EMPTY

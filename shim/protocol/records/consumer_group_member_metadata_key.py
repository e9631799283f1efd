"""ConsumerGroupMemberMetadataKey, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ConsumerGroupMemberMetadataKey(Message):
    __slots__ = ("group_id", "member_id")
    API_KEY = 5
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("group_id", "string", "0", ""),
        ("member_id", "string", "0", ""),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        member_id: str = ""

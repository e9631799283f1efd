"""OffsetCommitValue, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class OffsetCommitValue(Message):
    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id")
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("offset", "int64", "0+", 0),
        ("leader_epoch", "int32", "3+", -1, "", True),
        ("metadata", "string", "0+", ""),
        ("commit_timestamp", "int64", "0+", 0),
        ("expire_timestamp", "int64", "1", -1, "", True),
        ("topic_id", "uuid", "4+", ZERO_UUID, "", True, 0, "4+"),
    )

    if TYPE_CHECKING:
        offset: int = 0
        leader_epoch: int = -1
        metadata: str = ""
        commit_timestamp: int = 0
        expire_timestamp: int = -1
        topic_id: bytes = ZERO_UUID

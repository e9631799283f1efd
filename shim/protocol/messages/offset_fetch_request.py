"""OffsetFetchRequest, versions 1-10. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class OffsetFetchRequestTopic(Message):
    __slots__ = ("name", "partition_indexes")
    FIELDS = (
        ("name", "string", "0-7", ""),
        ("partition_indexes", "[]int32", "0-7", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partition_indexes: list[int] = EMPTY


class OffsetFetchRequestTopics(Message):
    __slots__ = ("name", "topic_id", "partition_indexes")
    FIELDS = (
        ("name", "string", "8-9", "", "", True),
        ("topic_id", "uuid", "10+", ZERO_UUID, "", True),
        ("partition_indexes", "[]int32", "8+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID
        partition_indexes: list[int] = EMPTY


class OffsetFetchRequestGroup(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics")
    FIELDS = (
        ("group_id", "string", "8+", ""),
        ("member_id", "string", "9+", None, "9+", True),
        ("member_epoch", "int32", "9+", -1, "", True),
        ("topics", "[]OffsetFetchRequestTopics", "8+", (), "8+"),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        member_id: str | None = None
        member_epoch: int = -1
        topics: list[OffsetFetchRequestTopics] | None = EMPTY


class OffsetFetchRequest(Message):
    __slots__ = ("group_id", "topics", "groups", "require_stable")
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_FROM = 6
    FIELDS = (
        ("group_id", "string", "0-7", ""),
        ("topics", "[]OffsetFetchRequestTopic", "0-7", (), "2-7"),
        ("groups", "[]OffsetFetchRequestGroup", "8+", ()),
        ("require_stable", "bool", "7+", False),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[OffsetFetchRequestTopic] | None = EMPTY
        groups: list[OffsetFetchRequestGroup] = EMPTY
        require_stable: bool = False

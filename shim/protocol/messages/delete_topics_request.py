"""DeleteTopicsRequest, versions 1-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class DeleteTopicState(Message):
    __slots__ = ("name", "topic_id")
    FIELDS = (
        ("name", "string", "6+", None, "6+"),
        ("topic_id", "uuid", "6+", ZERO_UUID),
    )

    if TYPE_CHECKING:
        name: str | None = None
        topic_id: bytes = ZERO_UUID


class DeleteTopicsRequest(Message):
    __slots__ = ("topics", "topic_names", "timeout_ms")
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("topics", "[]DeleteTopicState", "6+", ()),
        ("topic_names", "[]string", "0-5", (), "", True),
        ("timeout_ms", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        topics: list[DeleteTopicState] = EMPTY
        topic_names: list[str] = EMPTY
        timeout_ms: int = 0

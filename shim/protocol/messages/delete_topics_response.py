"""DeleteTopicsResponse, versions 1-6. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class DeletableTopicResult(Message):
    __slots__ = ("name", "topic_id", "error_code", "error_message")
    FIELDS = (
        ("name", "string", "0+", "", "6+"),
        ("topic_id", "uuid", "6+", ZERO_UUID, "", True),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "5+", None, "5+", True),
    )

    if TYPE_CHECKING:
        name: str | None = ""
        topic_id: bytes = ZERO_UUID
        error_code: int = 0
        error_message: str | None = None


class DeleteTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("responses", "[]DeletableTopicResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        responses: list[DeletableTopicResult] = EMPTY

"""CreatePartitionsResponse, versions 0-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class CreatePartitionsTopicResult(Message):
    __slots__ = ("name", "error_code", "error_message")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        name: str = ""
        error_code: int = 0
        error_message: str | None = None


class CreatePartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("results", "[]CreatePartitionsTopicResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        results: list[CreatePartitionsTopicResult] = EMPTY

"""AlterConfigsResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AlterConfigsResourceResponse(Message):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""


class AlterConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("responses", "[]AlterConfigsResourceResponse", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        responses: list[AlterConfigsResourceResponse] = EMPTY

"""CreateAclsResponse, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AclCreationResult(Message):
    __slots__ = ("error_code", "error_message")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""


class CreateAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("results", "[]AclCreationResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        results: list[AclCreationResult] = EMPTY

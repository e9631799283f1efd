"""DeleteGroupsResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DeletableGroupResult(Message):
    __slots__ = ("group_id", "error_code")
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        error_code: int = 0


class DeleteGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("results", "[]DeletableGroupResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        results: list[DeletableGroupResult] = EMPTY

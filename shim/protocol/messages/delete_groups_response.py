"""DeleteGroupsResponse, versions 0-2. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class DeletableGroupResult(Message):
    __slots__ = ("group_id", "error_code")
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("error_code", "int16", "0+", 0),
    )

    def __init__(self, *, group_id: str = "", error_code: int = 0) -> None:
        self.group_id = group_id
        self.error_code = error_code
        self.unknown_tags = None


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

    def __init__(self, *, throttle_time_ms: int = 0, results: list[DeletableGroupResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

"""CreateAclsResponse, versions 1-3. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class AclCreationResult(Message):
    __slots__ = ("error_code", "error_message")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
    )

    def __init__(self, *, error_code: int = 0, error_message: str | None = "") -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


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

    def __init__(self, *, throttle_time_ms: int = 0, results: list[AclCreationResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

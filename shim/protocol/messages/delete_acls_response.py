"""DeleteAclsResponse, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DeleteAclsMatchingAcl(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("pattern_type", "int8", "1+", 3),
        ("principal", "string", "0+", ""),
        ("host", "string", "0+", ""),
        ("operation", "int8", "0+", 0),
        ("permission_type", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""
        pattern_type: int = 3
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0


class DeleteAclsFilterResult(Message):
    __slots__ = ("error_code", "error_message", "matching_acls")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("matching_acls", "[]DeleteAclsMatchingAcl", "0+", ()),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""
        matching_acls: list[DeleteAclsMatchingAcl] = EMPTY


class DeleteAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "filter_results")
    API_KEY = 31
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("filter_results", "[]DeleteAclsFilterResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        filter_results: list[DeleteAclsFilterResult] = EMPTY

"""DescribeAclsRequest, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class DescribeAclsRequest(Message):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("resource_type_filter", "int8", "0+", 0),
        ("resource_name_filter", "string", "0+", "", "0+"),
        ("pattern_type_filter", "int8", "1+", 3),
        ("principal_filter", "string", "0+", "", "0+"),
        ("host_filter", "string", "0+", "", "0+"),
        ("operation", "int8", "0+", 0),
        ("permission_type", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        resource_type_filter: int = 0
        resource_name_filter: str | None = ""
        pattern_type_filter: int = 3
        principal_filter: str | None = ""
        host_filter: str | None = ""
        operation: int = 0
        permission_type: int = 0

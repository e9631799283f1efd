"""DescribeAclsResponse, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AclDescription(Message):
    __slots__ = ("principal", "host", "operation", "permission_type")
    FIELDS = (
        ("principal", "string", "0+", ""),
        ("host", "string", "0+", ""),
        ("operation", "int8", "0+", 0),
        ("permission_type", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0


class DescribeAclsResource(Message):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")
    FIELDS = (
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("pattern_type", "int8", "1+", 3),
        ("acls", "[]AclDescription", "0+", ()),
    )

    if TYPE_CHECKING:
        resource_type: int = 0
        resource_name: str = ""
        pattern_type: int = 3
        acls: list[AclDescription] = EMPTY


class DescribeAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("resources", "[]DescribeAclsResource", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = ""
        resources: list[DescribeAclsResource] = EMPTY

"""CreateAclsRequest, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AclCreation(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    FIELDS = (
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("resource_pattern_type", "int8", "1+", 3),
        ("principal", "string", "0+", ""),
        ("host", "string", "0+", ""),
        ("operation", "int8", "0+", 0),
        ("permission_type", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        resource_type: int = 0
        resource_name: str = ""
        resource_pattern_type: int = 3
        principal: str = ""
        host: str = ""
        operation: int = 0
        permission_type: int = 0


class CreateAclsRequest(Message):
    __slots__ = ("creations",)
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (("creations", "[]AclCreation", "0+", ()),)

    if TYPE_CHECKING:
        creations: list[AclCreation] = EMPTY

"""IncrementalAlterConfigsRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AlterableConfig(Message):
    __slots__ = ("name", "config_operation", "value")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("config_operation", "int8", "0+", 0),
        ("value", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        name: str = ""
        config_operation: int = 0
        value: str | None = ""


class AlterConfigsResource(Message):
    __slots__ = ("resource_type", "resource_name", "configs")
    FIELDS = (
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("configs", "[]AlterableConfig", "0+", ()),
    )

    if TYPE_CHECKING:
        resource_type: int = 0
        resource_name: str = ""
        configs: list[AlterableConfig] = EMPTY


class IncrementalAlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only")
    API_KEY = 44
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    FIELDS = (
        ("resources", "[]AlterConfigsResource", "0+", ()),
        ("validate_only", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        resources: list[AlterConfigsResource] = EMPTY
        validate_only: bool = False

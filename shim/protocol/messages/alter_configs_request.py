"""AlterConfigsRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AlterableConfig(Message):
    __slots__ = ("name", "value")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("value", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        name: str = ""
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


class AlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only")
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("resources", "[]AlterConfigsResource", "0+", ()),
        ("validate_only", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        resources: list[AlterConfigsResource] = EMPTY
        validate_only: bool = False

"""DescribeConfigsRequest, versions 1-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribeConfigsResource(Message):
    __slots__ = ("resource_type", "resource_name", "configuration_keys")
    FIELDS = (
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("configuration_keys", "[]string", "0+", (), "0+"),
    )

    if TYPE_CHECKING:
        resource_type: int = 0
        resource_name: str = ""
        configuration_keys: list[str] | None = EMPTY


class DescribeConfigsRequest(Message):
    __slots__ = ("resources", "include_synonyms", "include_documentation")
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("resources", "[]DescribeConfigsResource", "0+", ()),
        ("include_synonyms", "bool", "1+", False),
        ("include_documentation", "bool", "3+", False),
    )

    if TYPE_CHECKING:
        resources: list[DescribeConfigsResource] = EMPTY
        include_synonyms: bool = False
        include_documentation: bool = False

"""DescribeConfigsResponse, versions 1-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribeConfigsSynonym(Message):
    __slots__ = ("name", "value", "source")
    FIELDS = (
        ("name", "string", "1+", ""),
        ("value", "string", "1+", "", "0+"),
        ("source", "int8", "1+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        value: str | None = ""
        source: int = 0


class DescribeConfigsResourceResult(Message):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )
    FIELDS = (
        ("name", "string", "0+", ""),
        ("value", "string", "0+", "", "0+"),
        ("read_only", "bool", "0+", False),
        ("config_source", "int8", "1+", -1, "", True),
        ("is_sensitive", "bool", "0+", False),
        ("synonyms", "[]DescribeConfigsSynonym", "1+", (), "", True),
        ("config_type", "int8", "3+", 0, "", True),
        ("documentation", "string", "3+", "", "0+", True),
    )

    if TYPE_CHECKING:
        name: str = ""
        value: str | None = ""
        read_only: bool = False
        config_source: int = -1
        is_sensitive: bool = False
        synonyms: list[DescribeConfigsSynonym] = EMPTY
        config_type: int = 0
        documentation: str | None = ""


class DescribeConfigsResult(Message):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("resource_type", "int8", "0+", 0),
        ("resource_name", "string", "0+", ""),
        ("configs", "[]DescribeConfigsResourceResult", "0+", ()),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = ""
        resource_type: int = 0
        resource_name: str = ""
        configs: list[DescribeConfigsResourceResult] = EMPTY


class DescribeConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("results", "[]DescribeConfigsResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        results: list[DescribeConfigsResult] = EMPTY

"""ListConfigResourcesResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ConfigResource(Message):
    __slots__ = ("resource_name", "resource_type")
    FIELDS = (
        ("resource_name", "string", "0+", ""),
        ("resource_type", "int8", "1+", 16, "", True),
    )

    if TYPE_CHECKING:
        resource_name: str = ""
        resource_type: int = 16


class ListConfigResourcesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "config_resources")
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("config_resources", "[]ConfigResource", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        config_resources: list[ConfigResource] = EMPTY

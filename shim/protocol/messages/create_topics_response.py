"""CreateTopicsResponse, versions 2-7. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class CreatableTopicConfigs(Message):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")
    FIELDS = (
        ("name", "string", "5+", ""),
        ("value", "string", "5+", "", "5+"),
        ("read_only", "bool", "5+", False),
        ("config_source", "int8", "5+", -1, "", True),
        ("is_sensitive", "bool", "5+", False),
    )

    if TYPE_CHECKING:
        name: str = ""
        value: str | None = ""
        read_only: bool = False
        config_source: int = -1
        is_sensitive: bool = False


class CreatableTopicResult(Message):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )
    FIELDS = (
        ("name", "string", "0+", ""),
        ("topic_id", "uuid", "7+", ZERO_UUID, "", True),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "1+", "", "0+", True),
        ("topic_config_error_code", "int16", "5+", 0, "", True, 0, "5+"),
        ("num_partitions", "int32", "5+", -1, "", True),
        ("replication_factor", "int16", "5+", -1, "", True),
        ("configs", "[]CreatableTopicConfigs", "5+", (), "5+", True),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID
        error_code: int = 0
        error_message: str | None = ""
        topic_config_error_code: int = 0
        num_partitions: int = -1
        replication_factor: int = -1
        configs: list[CreatableTopicConfigs] | None = EMPTY


class CreateTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("throttle_time_ms", "int32", "2+", 0, "", True),
        ("topics", "[]CreatableTopicResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        topics: list[CreatableTopicResult] = EMPTY

"""CreateTopicsResponse, versions 2-7. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class CreatableTopicConfigs(Message):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")
    FIELDS = (
        ("name", "string", "5+", ""),
        ("value", "string", "5+", "", "5+"),
        ("read_only", "bool", "5+", False),
        ("config_source", "int8", "5+", -1, "", True),
        ("is_sensitive", "bool", "5+", False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is EMPTY else configs
        self.unknown_tags = None


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

    def __init__(self, *, throttle_time_ms: int = 0, topics: list[CreatableTopicResult] = EMPTY) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

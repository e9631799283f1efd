"""MetadataRequest, versions 0-13. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class MetadataRequestTopic(Message):
    __slots__ = ("topic_id", "name")
    FIELDS = (
        ("topic_id", "uuid", "10+", ZERO_UUID, "", True),
        ("name", "string", "0+", "", "10+"),
    )

    def __init__(self, *, topic_id: bytes = ZERO_UUID, name: str | None = "") -> None:
        self.topic_id = topic_id
        self.name = name
        self.unknown_tags = None


class MetadataRequest(Message):
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    FIELDS = (
        ("topics", "[]MetadataRequestTopic", "0+", (), "1+"),
        ("allow_auto_topic_creation", "bool", "4+", True),
        ("include_cluster_authorized_operations", "bool", "8-10", False),
        ("include_topic_authorized_operations", "bool", "8+", False),
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
        self.unknown_tags = None

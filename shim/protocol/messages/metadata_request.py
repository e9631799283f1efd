"""MetadataRequest, versions 0-13. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class MetadataRequestTopic(Message):
    __slots__ = ("topic_id", "name")
    FIELDS = (
        ("topic_id", "uuid", "10+", ZERO_UUID, "", True),
        ("name", "string", "0+", "", "10+"),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        name: str | None = ""


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

    if TYPE_CHECKING:
        topics: list[MetadataRequestTopic] | None = EMPTY
        allow_auto_topic_creation: bool = True
        include_cluster_authorized_operations: bool = False
        include_topic_authorized_operations: bool = False

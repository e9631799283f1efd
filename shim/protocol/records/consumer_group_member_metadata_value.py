"""ConsumerGroupMemberMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ClassicProtocol(Message):
    __slots__ = ("name", "metadata")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("metadata", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        name: str = ""
        metadata: bytes = b""


class ClassicMemberMetadata(Message):
    __slots__ = ("session_timeout_ms", "supported_protocols")
    FIELDS = (
        ("session_timeout_ms", "int32", "0+", 0),
        ("supported_protocols", "[]ClassicProtocol", "0+", ()),
    )

    if TYPE_CHECKING:
        session_timeout_ms: int = 0
        supported_protocols: list[ClassicProtocol] = EMPTY


class ConsumerGroupMemberMetadataValue(Message):
    __slots__ = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "rebalance_timeout_ms",
        "server_assignor",
        "classic_member_metadata",
    )
    API_KEY = 5
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("instance_id", "string", "0+", "", "0+"),
        ("rack_id", "string", "0+", "", "0+"),
        ("client_id", "string", "0+", ""),
        ("client_host", "string", "0+", ""),
        ("subscribed_topic_names", "[]string", "0+", ()),
        ("subscribed_topic_regex", "string", "0+", "", "0+"),
        ("rebalance_timeout_ms", "int32", "0+", -1),
        ("server_assignor", "string", "0+", "", "0+"),
        ("classic_member_metadata", "ClassicMemberMetadata", "0+", (), "0+", False, 0, "0+"),
    )

    if TYPE_CHECKING:
        instance_id: str | None = ""
        rack_id: str | None = ""
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: list[str] = EMPTY
        subscribed_topic_regex: str | None = ""
        rebalance_timeout_ms: int = -1
        server_assignor: str | None = ""
        classic_member_metadata: ClassicMemberMetadata | None = EMPTY

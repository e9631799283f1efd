"""StreamsGroupMemberMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class Endpoint(Message):
    __slots__ = ("host", "port")
    FIELDS = (
        ("host", "string", "0+", ""),
        ("port", "uint16", "0+", 0),
    )

    if TYPE_CHECKING:
        host: str = ""
        port: int = 0


class KeyValue(Message):
    __slots__ = ("key", "value")
    FIELDS = (
        ("key", "string", "0+", ""),
        ("value", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        key: str = ""
        value: str = ""


class StreamsGroupMemberMetadataValue(Message):
    __slots__ = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "rebalance_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
    )
    API_KEY = 19
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("instance_id", "string", "0+", "", "0+"),
        ("rack_id", "string", "0+", "", "0+"),
        ("client_id", "string", "0+", ""),
        ("client_host", "string", "0+", ""),
        ("rebalance_timeout_ms", "int32", "0+", -1),
        ("topology_epoch", "int32", "0+", 0),
        ("process_id", "string", "0+", ""),
        ("user_endpoint", "Endpoint", "0+", None, "0+"),
        ("client_tags", "[]KeyValue", "0+", ()),
    )

    if TYPE_CHECKING:
        instance_id: str | None = ""
        rack_id: str | None = ""
        client_id: str = ""
        client_host: str = ""
        rebalance_timeout_ms: int = -1
        topology_epoch: int = 0
        process_id: str = ""
        user_endpoint: Endpoint | None = None
        client_tags: list[KeyValue] = EMPTY

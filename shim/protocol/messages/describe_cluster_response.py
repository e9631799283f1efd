"""DescribeClusterResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribeClusterBroker(Message):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("host", "string", "0+", ""),
        ("port", "int32", "0+", 0),
        ("rack", "string", "0+", None, "0+"),
        ("is_fenced", "bool", "2+", False),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None
        is_fenced: bool = False


class DescribeClusterResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("endpoint_type", "int8", "1+", 1),
        ("cluster_id", "string", "0+", ""),
        ("controller_id", "int32", "0+", -1),
        ("brokers", "[]DescribeClusterBroker", "0+", ()),
        ("cluster_authorized_operations", "int32", "0+", -2147483648),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = None
        endpoint_type: int = 1
        cluster_id: str = ""
        controller_id: int = -1
        brokers: list[DescribeClusterBroker] = EMPTY
        cluster_authorized_operations: int = -2147483648

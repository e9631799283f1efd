"""DescribeClusterRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class DescribeClusterRequest(Message):
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("include_cluster_authorized_operations", "bool", "0+", False),
        ("endpoint_type", "int8", "1+", 1),
        ("include_fenced_brokers", "bool", "2+", False),
    )

    if TYPE_CHECKING:
        include_cluster_authorized_operations: bool = False
        endpoint_type: int = 1
        include_fenced_brokers: bool = False

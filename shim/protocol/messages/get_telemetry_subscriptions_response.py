"""GetTelemetrySubscriptionsResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class GetTelemetrySubscriptionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )
    API_KEY = 71
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("client_instance_id", "uuid", "0+", ZERO_UUID),
        ("subscription_id", "int32", "0+", 0),
        ("accepted_compression_types", "[]int8", "0+", ()),
        ("push_interval_ms", "int32", "0+", 0),
        ("telemetry_max_bytes", "int32", "0+", 0),
        ("delta_temporality", "bool", "0+", False),
        ("requested_metrics", "[]string", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        client_instance_id: bytes = ZERO_UUID
        subscription_id: int = 0
        accepted_compression_types: list[int] = EMPTY
        push_interval_ms: int = 0
        telemetry_max_bytes: int = 0
        delta_temporality: bool = False
        requested_metrics: list[str] = EMPTY

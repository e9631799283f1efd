"""PushTelemetry (key 72), version 0.

Takes the metrics that a client pushes (KIP-714) and passes them to the receivers that `metric.reporters` names. Errors:
INVALID_REQUEST (a reserved id, or a push after the last one), THROTTLING_QUOTA_EXCEEDED (before the push interval has
passed), UNKNOWN_SUBSCRIPTION_ID (the subscriptions changed: the client asks again), UNSUPPORTED_COMPRESSION_TYPE,
TELEMETRY_TOO_LARGE (over `telemetry.max.bytes`), INVALID_RECORD (a receiver could not read it).
"""

from __future__ import annotations

from kafka_shim.errors import KafkaError
from kafka_shim.protocol.messages.push_telemetry_request import PushTelemetryRequest
from kafka_shim.protocol.messages.push_telemetry_response import PushTelemetryResponse
from kafka_shim.telemetry.client_metrics import client_metrics_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 72, 0, 0
REQUEST, RESPONSE = PushTelemetryRequest, PushTelemetryResponse


def handle(context: Context, request: PushTelemetryRequest) -> PushTelemetryResponse:
    try:
        client_metrics_of(context.broker).push(
            request.client_instance_id,
            context.session,
            context.client_id,
            subscription_id=request.subscription_id,
            is_terminating=request.terminating,
            codec=request.compression_type,
            metrics=request.metrics,
        )
    except KafkaError as err:
        return PushTelemetryResponse(error_code=err.code)
    return PushTelemetryResponse()

"""GetTelemetrySubscriptions (key 71), version 0.

Tells a client which metrics it is to push how often (KIP-714), by the CLIENT_METRICS resources whose `match` it meets,
and gives an id to one that has none. The API is advertised only if `metric.reporters` names a receiver, as in Kafka,
and served always. A question before the push interval has passed is THROTTLING_QUOTA_EXCEEDED, unless the subscriptions
changed or the last push had an error that asks for it.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kafka_shim.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kafka_shim.telemetry.client_metrics import OFFERED, client_metrics_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 71, 0, 0
REQUEST, RESPONSE = GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse


def handle(context: Context, request: GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse:
    clients = client_metrics_of(context.broker)
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = clients.new_id()
    try:
        instance = clients.subscriptions(instance_id, context.session, context.client_id)
    except KafkaError as err:
        return GetTelemetrySubscriptionsResponse(error_code=err.code)
    return GetTelemetrySubscriptionsResponse(
        error_code=ErrorCode.NONE,
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=OFFERED,
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=clients.max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )

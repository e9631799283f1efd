"""DescribeCluster (key 60), versions 0-2.

Returns the brokers, the controller and the cluster id. All versions are flexible. v1 the requested endpoint type (1
brokers, 2 controllers; this endpoint is no controller: MISMATCHED_ENDPOINT_TYPE). v2 fenced brokers, if the client asks
for them: other brokers that are registered in the metadata, such as those of the cluster that the directory came from.
"""

from __future__ import annotations

from kafka_shim.api.partitions import cluster_operations
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kafka_shim.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 60, 0, 2
REQUEST, RESPONSE = DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2


def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    broker = context.broker
    host, port = context.session.advertised()
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=context.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=context.node_id, host=host, port=port, rack=broker.config.broker_rack)
        ],
    )
    if request.include_fenced_brokers:
        response.brokers += _others(context)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def _others(context: Context) -> list[DescribeClusterBroker]:
    """Returns the other registered brokers that have this listener. None of them is alive, whatever the metadata says:
    Kafka's controller fences a broker from which it hears nothing."""
    return [
        DescribeClusterBroker(broker_id=broker_id, host=one.host, port=one.port, rack=registered.rack, is_fenced=True)
        for broker_id, registered in context.broker.metadata.image.brokers.items()
        if broker_id != context.node_id
        for one in registered.end_points
        if one.name == context.listener.name
    ]

"""DescribeCluster (key 60), versions 0-2.

Returns the brokers, the controller and the cluster id. All versions are flexible. v1 the requested endpoint type (1
brokers, 2 controllers; this endpoint is no controller: MISMATCHED_ENDPOINT_TYPE). v2 fenced brokers; there are none
here.
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
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response

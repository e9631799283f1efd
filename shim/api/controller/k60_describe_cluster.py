"""DescribeCluster (key 60), versions 0-2, of the controller.

As on a broker's listener, with the controllers in place of the brokers: endpoint type 2. Version 0 has no endpoint type
and asks for brokers: INVALID_REQUEST, later ones MISMATCHED_ENDPOINT_TYPE. Below metadata.version 15 controllers are
not registered: UNSUPPORTED_VERSION (KIP-919).
"""

from __future__ import annotations

from kafka_shim.api.k60_describe_cluster import BROKERS, CONTROLLERS
from kafka_shim.api.partitions import cluster_operations
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.features import CONTROLLER_REGISTRATION, METADATA_VERSION
from kafka_shim.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kafka_shim.protocol.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 60, 0, 2
REQUEST, RESPONSE = DescribeClusterRequest, DescribeClusterResponse


def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    broker = context.broker
    image = broker.metadata.image
    if image.features.get(METADATA_VERSION, 0) < CONTROLLER_REGISTRATION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Direct-to-controller communication is not supported with the current MetadataVersion.",
        )
    if request.endpoint_type == BROKERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if context.api_version else ErrorCode.INVALID_REQUEST,
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER",
        )
    if request.endpoint_type != CONTROLLERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    response = DescribeClusterResponse(
        endpoint_type=CONTROLLERS, cluster_id=broker.cluster_id, controller_id=context.node_id
    )
    for node_id, controller in image.controllers.items():
        if node_id == context.node_id:
            host, port = context.session.advertised()
            response.brokers.append(DescribeClusterBroker(broker_id=node_id, host=host, port=port))
            continue
        response.brokers += [
            DescribeClusterBroker(broker_id=node_id, host=one.host, port=one.port)
            for one in controller.end_points
            if one.name == context.listener.name
        ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response

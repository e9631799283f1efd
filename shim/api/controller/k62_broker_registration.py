"""BrokerRegistration (key 62), versions 0-4, of the controller.

This node is the only broker of its cluster and replicates nothing. A request with its own id is
DUPLICATE_BROKER_REGISTRATION, as of any broker that is alive; one with another id is INVALID_REGISTRATION: start Apache
Kafka on the data directory, to get a cluster of more brokers. A broker of another cluster gets INCONSISTENT_CLUSTER_ID.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kafka_shim.protocol.messages.broker_registration_response import BrokerRegistrationResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 62, 0, 4
REQUEST, RESPONSE = BrokerRegistrationRequest, BrokerRegistrationResponse


def handle(context: Context, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    broker = context.broker
    if request.cluster_id != broker.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {broker.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    own = broker.metadata.image.brokers.get(request.broker_id)
    if request.broker_id != context.node_id or own is None:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION,
            f"broker {request.broker_id} cannot join: node {context.node_id} is the only broker of this cluster",
        )
    if request.incarnation_id != own.incarnation_id:
        raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "Another broker is registered with that broker id.")
    return BrokerRegistrationResponse(broker_epoch=own.broker_epoch)

"""UnregisterBroker (key 64), version 0.

Forgets a broker that is registered in the metadata, such as one of the cluster that the directory came from. A broker
that is not registered is BROKER_ID_NOT_REGISTERED. This node itself is INVALID_REQUEST while it runs: it would serve
nothing until it is started again.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kafka_shim.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from kafka_shim.protocol.records.unregister_broker_record import UnregisterBrokerRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 64, 0, 0
REQUEST, RESPONSE = UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(context: Context, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    metadata = context.broker.metadata
    registered = metadata.image.brokers.get(request.broker_id)
    if registered is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered"
        )
    if request.broker_id == context.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"broker {request.broker_id} is this node, the only one, and runs: stop it instead of unregistering it",
        )
    metadata.commit([UnregisterBrokerRecord(broker_id=request.broker_id, broker_epoch=registered.broker_epoch)])
    await metadata.flushed()
    return UnregisterBrokerResponse()

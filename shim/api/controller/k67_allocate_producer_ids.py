"""AllocateProducerIds (key 67), version 0, of the controller.

Reserves the next block of 1000 producer ids, which no other client then gets. A broker that is not registered with this
epoch is STALE_BROKER_EPOCH.
"""

from __future__ import annotations

from kafka_shim.api.controller.brokers import check_broker_epoch
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kafka_shim.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 67, 0, 0
REQUEST, RESPONSE = AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(context: Context, request: AllocateProducerIdsRequest) -> Outcome[AllocateProducerIdsResponse]:
    check_broker_epoch(context, request.broker_id, request.broker_epoch)
    first, count, flush = context.broker.metadata.next_producer_id_block()
    return Outcome(
        AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count), () if flush is None else (flush,)
    )

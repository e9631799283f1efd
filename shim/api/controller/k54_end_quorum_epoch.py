"""EndQuorumEpoch (key 54), versions 0-1.

A leader resigns. This node never does while it runs: it agrees with itself, another leader is INVALID_REQUEST. v1 has
endpoints.
"""

from __future__ import annotations

from kafka_shim.api.controller.quorum import add_endpoint, member_fault, request_fault
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kafka_shim.protocol.messages.end_quorum_epoch_response import (
    EndQuorumEpochResponse,
    NodeEndpoint,
    PartitionData,
    TopicData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 54, 0, 1
REQUEST, RESPONSE = EndQuorumEpochRequest, EndQuorumEpochResponse


def handle(context: Context, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
    fault = request_fault(context, request)
    if fault is not None:
        return EndQuorumEpochResponse(error_code=fault)
    asked = request.topics[0].partitions[0]
    code = member_fault(context, asked.leader_id, asked.leader_epoch)
    if not code and asked.leader_id != context.node_id:
        code = ErrorCode.INVALID_REQUEST
    partition = PartitionData(error_code=code, leader_id=context.node_id, leader_epoch=context.broker.metadata.epoch)
    response = EndQuorumEpochResponse(
        topics=[TopicData(topic_name=request.topics[0].topic_name, partitions=[partition])]
    )
    add_endpoint(context, response, NodeEndpoint)
    return response

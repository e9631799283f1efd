"""BeginQuorumEpoch (key 53), versions 0-1.

A leader announces its epoch to its voters. This node is the leader: it agrees with itself, another leader is
INVALID_REQUEST. v1 names the voter that is meant: INVALID_VOTER_KEY if that is not this node.
"""

from __future__ import annotations

from kafka_shim.api.controller.quorum import add_endpoint, is_other_voter, member_fault, request_fault
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kafka_shim.protocol.messages.begin_quorum_epoch_response import (
    BeginQuorumEpochResponse,
    NodeEndpoint,
    PartitionData,
    TopicData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 53, 0, 1
REQUEST, RESPONSE = BeginQuorumEpochRequest, BeginQuorumEpochResponse


def handle(context: Context, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
    fault = request_fault(context, request)
    if fault is not None:
        return BeginQuorumEpochResponse(error_code=fault)
    asked = request.topics[0].partitions[0]
    code = member_fault(context, asked.leader_id, asked.leader_epoch)
    if not code and asked.leader_id != context.node_id:
        code = ErrorCode.INVALID_REQUEST
    if not code and is_other_voter(context, request.voter_id, asked.voter_directory_id):
        code = ErrorCode.INVALID_VOTER_KEY
    partition = PartitionData(error_code=code, leader_id=context.node_id, leader_epoch=context.broker.metadata.epoch)
    response = BeginQuorumEpochResponse(
        topics=[TopicData(topic_name=request.topics[0].topic_name, partitions=[partition])]
    )
    add_endpoint(context, response, NodeEndpoint)
    return response

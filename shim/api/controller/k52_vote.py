"""Vote (key 52), versions 0-2.

A vote is never granted: this node is the leader of the epoch, and no other can be a candidate of a newer one. An epoch
that is not above that of the candidate's log is INVALID_REQUEST, an older one FENCED_LEADER_EPOCH. v1 says which voter
is asked: INVALID_VOTER_KEY if that is not this node. v2 has preliminary votes (KIP-996).
"""

from __future__ import annotations

from kafka_shim.api.controller.quorum import add_endpoint, is_other_voter, member_fault, request_fault
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.vote_request import VoteRequest
from kafka_shim.protocol.messages.vote_response import NodeEndpoint, PartitionData, TopicData, VoteResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 52, 0, 2
REQUEST, RESPONSE = VoteRequest, VoteResponse


def handle(context: Context, request: VoteRequest) -> VoteResponse:
    fault = request_fault(context, request)
    if fault is not None:
        return VoteResponse(error_code=fault)
    asked = request.topics[0].partitions[0]
    is_illegal = (
        asked.last_offset_epoch > asked.replica_epoch
        if asked.pre_vote
        else asked.last_offset_epoch >= asked.replica_epoch
    )
    if asked.last_offset < 0 or asked.last_offset_epoch < 0 or is_illegal:
        code = ErrorCode.INVALID_REQUEST
    else:
        code = member_fault(context, asked.replica_id, asked.replica_epoch)
    if not code and is_other_voter(context, request.voter_id, asked.voter_directory_id):
        code = ErrorCode.INVALID_VOTER_KEY
    partition = PartitionData(error_code=code, leader_id=context.node_id, leader_epoch=context.broker.metadata.epoch)
    response = VoteResponse(topics=[TopicData(topic_name=request.topics[0].topic_name, partitions=[partition])])
    add_endpoint(context, response, NodeEndpoint)
    return response

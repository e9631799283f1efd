"""UpdateRaftVoter (key 82), version 0, of the controller.

A voter reports its endpoints and the kraft.version that it supports (KIP-853). The only voter is this node, which
records that itself: what is equal to the record is accepted, anything else of it INVALID_REQUEST; another voter is
VOTER_NOT_FOUND.
"""

from __future__ import annotations

from kafka_shim.api.controller.quorum import leader_fault
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kafka_shim.protocol.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 82, 0, 0
REQUEST, RESPONSE = UpdateRaftVoterRequest, UpdateRaftVoterResponse


def handle(context: Context, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
    host, port = context.session.advertised()
    leader = CurrentLeader(leader_id=context.node_id, leader_epoch=context.broker.metadata.epoch, host=host, port=port)
    return UpdateRaftVoterResponse(error_code=_fault(context, request), current_leader=leader)


def _fault(context: Context, request: UpdateRaftVoterRequest) -> ErrorCode:
    broker = context.broker
    if request.cluster_id not in (None, broker.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if code := leader_fault(context, request.current_leader_epoch):
        return code
    if request.voter_id < 0 or request.voter_directory_id == bytes(16):
        return ErrorCode.INVALID_REQUEST
    default = broker.controller_listeners[0].name
    if default not in {one.name.upper() for one in request.listeners}:
        return ErrorCode.INVALID_REQUEST
    versions = request.kraft_version_feature
    if not 0 <= versions.min_supported_version <= versions.max_supported_version:
        return ErrorCode.INVALID_REQUEST
    if not versions.min_supported_version <= broker.metadata.kraft_version <= versions.max_supported_version:
        return ErrorCode.INVALID_REQUEST
    if request.voter_id != context.node_id or request.voter_directory_id != broker.metadata.directory_id:
        return ErrorCode.VOTER_NOT_FOUND
    return ErrorCode.NONE if broker.metadata.has_endpoints(request.listeners) else ErrorCode.INVALID_REQUEST

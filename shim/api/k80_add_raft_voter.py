"""AddRaftVoter (key 80), versions 0-1.

Adds a voter to the metadata quorum (KIP-853). The quorum of this node has one voter and replicates to no other: a
request that Kafka's leader refuses is refused with its code and text, a voter that could be added with
REQUEST_TIMED_OUT, as a leader does for a voter that has not read the metadata log. (Kafka's leader asks the voter for
its ApiVersions first, and says so where that fails, with the same code; this node connects to no address of a client.)
"""

from __future__ import annotations

from kafka_shim.api.raft_voters import check_dynamic, check_voter, voter_key, voter_keys
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kafka_shim.protocol.messages.add_raft_voter_response import AddRaftVoterResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 80, 0, 1
REQUEST, RESPONSE = AddRaftVoterRequest, AddRaftVoterResponse


def handle(context: Context, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    check_voter(context, request.cluster_id, request.voter_id, request.voter_directory_id, "Add")
    broker = context.broker
    default = (broker.controller_listeners or broker.listeners)[0].name
    if default not in {one.name.upper() for one in request.listeners}:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{_endpoints(request.listeners)}}})) "
            f"for the default listener ListenerName({default})",
        )
    check_dynamic(context, "adding")
    key = voter_key(request.voter_id, request.voter_directory_id)
    if request.voter_id == context.node_id:
        raise KafkaError(
            ErrorCode.DUPLICATE_VOTER,
            f"The voter id for {key} is already part of the set of voters {voter_keys(context)}.",
        )
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"Aborted add voter operation for {key} since it is lagging behind")


def _endpoints(listeners: list[Listener]) -> str:
    return ", ".join(f"ListenerName({one.name.upper()})={one.host}/<unresolved>:{one.port}" for one in listeners)

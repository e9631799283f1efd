"""RemoveRaftVoter (key 81), version 0.

Removes a voter from the metadata quorum (KIP-853). The only voter, this node, cannot be removed: VOTER_NOT_FOUND with
Kafka's text, as for a voter that is not there. A static quorum is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from kafka_shim.api.raft_voters import check_dynamic, check_voter, voter_key, voter_keys
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kafka_shim.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 81, 0, 0
REQUEST, RESPONSE = RemoveRaftVoterRequest, RemoveRaftVoterResponse


def handle(context: Context, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    check_voter(context, request.cluster_id, request.voter_id, request.voter_directory_id, "Remove")
    check_dynamic(context, "removing")
    key = voter_key(request.voter_id, request.voter_directory_id)
    raise KafkaError(
        ErrorCode.VOTER_NOT_FOUND, f"Cannot remove voter {key} from the set of voters {voter_keys(context)}"
    )

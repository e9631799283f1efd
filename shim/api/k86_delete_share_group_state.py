"""DeleteShareGroupState (key 86), version 0.

The group coordinator deletes the state of share partitions. One without a state is no error. Needs ClusterAction.
"""

from __future__ import annotations

from kafka_shim.api import share_states
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from kafka_shim.protocol.messages.delete_share_group_state_response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.messages.delete_share_group_state_request import PartitionData
    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 86, 0, 0
REQUEST, RESPONSE = DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


def handle(context: Context, request: DeleteShareGroupStateRequest) -> Steps[Outcome[DeleteShareGroupStateResponse]]:
    coordinator = context.broker.share_state.coordinator
    flushes: list[Flush] = []

    def delete(key: SharePartitionKey, wanted: PartitionData) -> None:
        flushes.extend(coordinator.delete(key))

    response = DeleteShareGroupStateResponse()
    answer = yield from share_states.answer(response, request, DeleteStateResult, PartitionResult, delete)
    return Outcome(answer, flushes)


def failed(
    request: DeleteShareGroupStateRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[DeleteShareGroupStateResponse]:
    """Returns the error for each share partition."""
    response = DeleteShareGroupStateResponse()
    return share_states.failed(response, request, DeleteStateResult, PartitionResult, code, message)

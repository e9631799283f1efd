"""ReadShareGroupState (key 84), version 0.

The leader of a partition reads the state of its share partitions, and its leader epoch fences older leaders from then
on (FENCED_LEADER_EPOCH). INVALID_REQUEST for a share partition without a state. Needs ClusterAction.
"""

from __future__ import annotations

from kafka_shim.api import share_states
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
from kafka_shim.protocol.messages.read_share_group_state_response import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.messages.read_share_group_state_request import PartitionData
    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 84, 0, 0
REQUEST, RESPONSE = ReadShareGroupStateRequest, ReadShareGroupStateResponse


def handle(context: Context, request: ReadShareGroupStateRequest) -> Steps[Outcome[ReadShareGroupStateResponse]]:
    coordinator = context.broker.share_state.coordinator
    flushes: list[Flush] = []

    def read(key: SharePartitionKey, wanted: PartitionData) -> PartitionResult:
        state, flushed = coordinator.read(key, wanted.leader_epoch)
        flushes.extend(flushed)
        return PartitionResult(
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[
                StateBatch(
                    first_offset=batch.first_offset,
                    last_offset=batch.last_offset,
                    delivery_state=batch.delivery_state,
                    delivery_count=batch.delivery_count,
                )
                for batch in state.state_batches
            ],
        )

    response = ReadShareGroupStateResponse()
    answer = yield from share_states.answer(response, request, ReadStateResult, PartitionResult, read)
    return Outcome(answer, flushes)


def failed(
    request: ReadShareGroupStateRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[ReadShareGroupStateResponse]:
    """Returns the error for each share partition."""
    response = ReadShareGroupStateResponse()
    return share_states.failed(response, request, ReadStateResult, PartitionResult, code, message)

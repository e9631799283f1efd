"""InitializeShareGroupState (key 83), version 0.

The group coordinator has share partitions start over: start offset, state epoch, no batches. The state epoch must not
decrease (FENCED_STATE_EPOCH). Unlike in the other requests about states, a topic without partitions leaves the others
as they are, as in Kafka. Needs ClusterAction.
"""

from __future__ import annotations

from kafka_shim.api import share_states
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from kafka_shim.protocol.messages.initialize_share_group_state_response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.messages.initialize_share_group_state_request import PartitionData
    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 83, 0, 0
REQUEST, RESPONSE = InitializeShareGroupStateRequest, InitializeShareGroupStateResponse


def handle(
    context: Context, request: InitializeShareGroupStateRequest
) -> Steps[Outcome[InitializeShareGroupStateResponse]]:
    coordinator = context.broker.share_state.coordinator
    flushes: list[Flush] = []

    def initialize(key: SharePartitionKey, wanted: PartitionData) -> None:
        flushes.extend(coordinator.initialize(key, wanted.state_epoch, wanted.start_offset))

    request.topics = [topic for topic in request.topics if topic.partitions]
    response = InitializeShareGroupStateResponse()
    answer = yield from share_states.answer(response, request, InitializeStateResult, PartitionResult, initialize)
    return Outcome(answer, flushes)


def failed(
    request: InitializeShareGroupStateRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[InitializeShareGroupStateResponse]:
    """Returns the error for each share partition."""
    response = InitializeShareGroupStateResponse()
    return share_states.failed(response, request, InitializeStateResult, PartitionResult, code, message)

"""ReadShareGroupStateSummary (key 87), versions 0-1.

The group coordinator reads start offsets and epochs of share partitions, without their batches. One without a state has
epochs of 0, no start offset (-1) and no count (-1). Needs ClusterAction. v1 delivery complete count (KIP-1226).
"""

from __future__ import annotations

from kafka_shim.api import share_states
from kafka_shim.protocol.messages.read_share_group_state_summary_request import ReadShareGroupStateSummaryRequest
from kafka_shim.protocol.messages.read_share_group_state_summary_response import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode
    from kafka_shim.protocol.messages.read_share_group_state_summary_request import PartitionData
    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 87, 0, 1
REQUEST, RESPONSE = ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse
ABANDONABLE = True


def handle(context: Context, request: ReadShareGroupStateSummaryRequest) -> Steps[ReadShareGroupStateSummaryResponse]:
    coordinator = context.broker.share_state.coordinator

    def read(key: SharePartitionKey, wanted: PartitionData) -> PartitionResult:
        state = coordinator.read_summary(key)
        return PartitionResult(
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )

    response = ReadShareGroupStateSummaryResponse()
    return (yield from share_states.answer(response, request, ReadStateSummaryResult, PartitionResult, read))


def failed(
    request: ReadShareGroupStateSummaryRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[ReadShareGroupStateSummaryResponse]:
    """Returns the error for each share partition."""
    response = ReadShareGroupStateSummaryResponse()
    return share_states.failed(response, request, ReadStateSummaryResult, PartitionResult, code, message)

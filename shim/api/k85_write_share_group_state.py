"""WriteShareGroupState (key 85), versions 0-1.

The leader of a partition records changed delivery states, and the start offset unless it is -1. Fenced by state epoch
and leader epoch; INVALID_REQUEST for a share partition without a state. Needs ClusterAction. v1 delivery complete count
(KIP-1226).
"""

from __future__ import annotations

from kafka_shim.api import share_states
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.write_share_group_state_request import WriteShareGroupStateRequest
from kafka_shim.protocol.messages.write_share_group_state_response import (
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.errors import ErrorCode
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.messages.write_share_group_state_request import PartitionData
    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 85, 0, 1
REQUEST, RESPONSE = WriteShareGroupStateRequest, WriteShareGroupStateResponse


def handle(context: Context, request: WriteShareGroupStateRequest) -> Steps[Outcome[WriteShareGroupStateResponse]]:
    from kafka_shim.share.state import StateBatch

    coordinator = context.broker.share_state.coordinator
    flushes: list[Flush] = []

    def write(key: SharePartitionKey, wanted: PartitionData) -> None:
        batches = [
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in wanted.state_batches
        ]
        flushes.extend(
            coordinator.write(
                key,
                wanted.state_epoch,
                wanted.leader_epoch,
                wanted.start_offset,
                wanted.delivery_complete_count,
                batches,
            )
        )

    response = WriteShareGroupStateResponse()
    answer = yield from share_states.answer(response, request, WriteStateResult, PartitionResult, write)
    return Outcome(answer, flushes)


def failed(
    request: WriteShareGroupStateRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[WriteShareGroupStateResponse]:
    """Returns the error for each share partition."""
    response = WriteShareGroupStateResponse()
    return share_states.failed(response, request, WriteStateResult, PartitionResult, code, message)

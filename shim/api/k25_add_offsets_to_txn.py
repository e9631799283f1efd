"""AddOffsetsToTxn (key 25), versions 0-4.

Adds the partition of `__consumer_offsets` that holds the group to the transaction. Clients of level 2 do not need it,
because TxnOffsetCommit v5 adds the partition (B8). v2 returns PRODUCER_FENCED where older versions return
INVALID_PRODUCER_EPOCH. v3 is flexible. v4 is for clients that know TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from kafka_shim.authorization import require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafka_shim.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kafka_shim.security.acl import GROUP, READ, TRANSACTIONAL_ID, WRITE
from kafka_shim.txn.transaction import TV0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 25, 0, 4
REQUEST, RESPONSE = AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def handle(
    context: Context, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Outcome[AddOffsetsToTxnResponse]:
    partition = GROUP_METADATA_TOPIC, context.broker.groups.partition_for(request.group_id)
    try:
        require(context, WRITE, TRANSACTIONAL_ID, request.transactional_id)
        require(context, READ, GROUP, request.group_id)
        flushes = context.broker.transactions.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset((partition,)),
            TV0,
            "AddOffsetsToTxn",
        )
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < 2:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=code)
    return Outcome(AddOffsetsToTxnResponse(), flushes)

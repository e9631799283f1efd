"""EndTxn (key 26), versions 0-5.

Commits or aborts a transaction. As in Kafka, the response is sent once the decision is written. Markers and completion
follow in the same turn of the loop, so that the next request finds the transaction complete, unless it has more than 64
partitions or `flush.messages` is to be waited for; in Kafka a reader may see the end a little later (B10). v2 returns
PRODUCER_FENCED where older versions return INVALID_PRODUCER_EPOCH. v3 is flexible. v4 is for clients that know
TRANSACTION_ABORTABLE. v5 is level 2 (KIP-890): each end bumps the epoch and returns it (B4, B23, B24).
"""

from __future__ import annotations

from kafka_shim.authorization import require
from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.plain_end_txn import PlainEndTxn
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.end_txn_request import EndTxnRequest
from kafka_shim.protocol.messages.end_txn_response import EndTxnResponse
from kafka_shim.security.acl import TRANSACTIONAL_ID, WRITE
from kafka_shim.storage.producers import CACHED_BATCHES
from kafka_shim.txn.marking import MOST_MARKERS_AT_ONCE
from kafka_shim.txn.records import unmarked_of
from kafka_shim.txn.transaction import TV0, TV2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.context import Context

KEY, MIN, MAX = 26, 0, 5
REQUEST, RESPONSE = EndTxnRequest, EndTxnResponse
PLAIN = PlainEndTxn(cext_segment, CACHED_BATCHES, MOST_MARKERS_AT_ONCE, unmarked_of)


def handle(
    context: Context, request: EndTxnRequest
) -> EndTxnResponse | Outcome[EndTxnResponse] | Coroutine[Any, Any, EndTxnResponse]:
    transactions = context.broker.transactions
    if context.done is not None:
        return _failed(context, transactions.not_prepared(*_arguments(context, request)[:3], context.done))
    require(context, WRITE, TRANSACTIONAL_ID, request.transactional_id)
    if transactions.must_wait(request.transactional_id):
        return _handle_stepwise(context, request)
    return _decided(context, request)


def _decided(context: Context, request: EndTxnRequest) -> EndTxnResponse | Outcome[EndTxnResponse]:
    try:  # in a function of its own, which is short: `QuickCompletion.quick_steps`
        outcome = context.broker.transactions.decide(*_arguments(context, request))
    except KafkaError as error:
        return _failed(context, error)
    producer_id, producer_epoch = outcome.response
    response = EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)
    return Outcome(response, outcome.flushes, outcome.follow_up)


async def _handle_stepwise(context: Context, request: EndTxnRequest) -> EndTxnResponse:
    """Used if a test holds, drops or crashes at the steps of the end, or if each step must wait for the disk."""
    try:
        producer_id, producer_epoch = await context.broker.transactions.end_stepwise(*_arguments(context, request))
    except KafkaError as error:
        return _failed(context, error)
    return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def _arguments(context: Context, request: EndTxnRequest) -> tuple[str, int, int, bool, int]:
    level = TV2 if context.api_version >= 5 else TV0
    return request.transactional_id, request.producer_id, request.producer_epoch, request.committed, level


def _failed(context: Context, error: KafkaError) -> EndTxnResponse:
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < 2:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=code)

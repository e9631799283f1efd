"""A Produce with transactional batches: they are admitted to their transaction first (B9), then appended."""

from __future__ import annotations

from kafka_shim.api.produce_append import append, check_framing, take_done
from kafka_shim.cext.many_logs import logs_and_sequences, of_one_producer, refused, take_guards, transactional
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import wait_for
from kafka_shim.protocol.messages.produce_response import ProduceResponse
from kafka_shim.txn.admission import (
    ADDED,
    admit,
    admit_patiently,
    as_produce_error,
    is_concurrent,
    operation_of_produce,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.cext.many_logs import PartitionBatch
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flushes
    from kafka_shim.protocol.messages.produce_request import ProduceRequest
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.txn.admission import Admission

# The errors before the append whose responses carry a message (ReplicaManager.handleProduceAppend).
_EXPLAINED = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.NOT_ENOUGH_REPLICAS})


def admit_and_append(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[PartitionBatch],
    of_transaction: list[PartitionBatch],
) -> ProduceResponse | Coroutine[Any, Any, Any] | None:
    """Admit the batches of a transaction, then append what is not refused. Returns a coroutine if it must wait. Raises
    KafkaError for the whole request."""
    broker = context.broker
    explanations = broker.transactions.explanations
    check_framing(of_transaction, context.api_version)
    wanted = of_one_producer(of_transaction)
    for batch in refused(of_transaction):
        explanations.refused("Produce", request.transactional_id, batch.error, context.received_ms)
    if wanted is None:
        refusal = KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
        explanations.refused("Produce", request.transactional_id, refusal, context.received_ms)
        raise refusal
    if not wanted:
        return append(context, request.acks, response, batches)
    assert request.transactional_id is not None
    operation = operation_of_produce(context.api_version)
    producer_id, producer_epoch = wanted[0].producer_id, wanted[0].producer_epoch
    asked = logs_and_sequences(wanted)
    if context.done is not None:
        outcomes, flushes = context.done
    else:
        outcomes, flushes = ask_coordinator(
            broker, request.transactional_id, producer_id, producer_epoch, asked, context.api_version
        )
    not_admitted = take_guards(wanted, outcomes)
    if not_admitted:
        if operation == ADDED and is_concurrent(outcomes):
            for batch in batches:
                # The views of the receive buffer are valid only during this call.
                batch.records = bytearray(batch.records)
            return _admit_later(context, request, response, batches, wanted, asked, producer_id, producer_epoch)
        _refuse(not_admitted, operation)
    if broker.faults.armed or flushes:
        for batch in batches:
            batch.records = bytearray(batch.records)
        return _append_later(context, request, response, batches, wanted, flushes)
    return _append_admitted(context, request, response, batches, wanted, frozenset(refused(wanted)))


def ask_coordinator(
    broker: Broker,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    asked: list[tuple[PartitionLog, int]],
    version: int,
) -> tuple[list[Admission], Flushes]:
    """`txn.admission.admit` for batches of a Produce of this version."""
    return admit(
        broker.transactions,
        broker.config.transaction_partition_verification_enable,
        transactional_id,
        producer_id,
        producer_epoch,
        asked,
        operation_of_produce(version),
    )


def append_rest(
    context: Context, request: ProduceRequest, response: ProduceResponse, batches: list[PartitionBatch]
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse] | None:
    """Append what the short way has left of a request, of which all batches are admitted."""
    rest = take_done(batches, context.done)
    return _append_admitted(context, request, response, rest, transactional(rest), ())


async def _append_later(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[PartitionBatch],
    wanted: list[PartitionBatch],
    flushes: Flushes,
) -> ProduceResponse | None:
    """Append once the disk has the coordinator's record, as `flush.messages` requires. After a power cut, a batch
    without that record would belong to a transaction that no coordinator knows and would hang. A test may also hold the
    request here."""
    try:
        await wait_for(flushes)
    except KafkaError as error:
        producer = wanted[0].producer_id, wanted[0].producer_epoch
        context.broker.transactions.note_refusal("Produce", request.transactional_id, error, producer)
        _refuse([(batch, error) for batch in wanted if batch.error is None], ADDED)
    await context.broker.faults.gate("produce.verified", transactional_id=request.transactional_id)
    context.received_ms = context.broker.clock.now_ms()  # LogAppendTime is that of the append
    answer = _append_admitted(context, request, response, batches, wanted, frozenset(refused(wanted)))
    if answer is None or isinstance(answer, ProduceResponse):
        return answer
    return await answer


def _append_admitted(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[PartitionBatch],
    wanted: list[PartitionBatch],
    before: Collection[PartitionBatch],
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse] | None:
    """Append. If the log refuses a transactional batch, other than those `before`, the error is recorded in the history
    of its transactional id."""
    answer = append(context, request.acks, response, batches)
    after = refused(wanted)
    if len(after) > len(before):
        explanations = context.broker.transactions.explanations
        for batch in after:
            if batch not in before:
                explanations.refused("Produce", request.transactional_id, batch.error, context.received_ms)
    return answer


async def _admit_later(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[PartitionBatch],
    wanted: list[PartitionBatch],
    asked: list[tuple[PartitionLog, int]],
    producer_id: int,
    producer_epoch: int,
) -> ProduceResponse | None:
    broker = context.broker
    assert request.transactional_id is not None
    outcomes, flushes = await admit_patiently(
        broker.transactions, broker.clock, broker.config, request.transactional_id, producer_id, producer_epoch, asked
    )
    _refuse(take_guards(wanted, outcomes), ADDED)
    return await _append_later(context, request, response, batches, wanted, flushes)


def _refuse(not_admitted: list[tuple[PartitionBatch, KafkaError]], operation: int) -> None:
    for batch, refusal in not_admitted:
        batch.error = as_produce_error(refusal, operation)
        batch.log = None  # these responses do not carry the log start offset
        if batch.error.code in _EXPLAINED:
            batch.answer.error_message = batch.error.message

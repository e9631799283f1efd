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
    explanations = context.broker.transactions.explanations
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
    return TransactionalProduce(context, request, response, batches, wanted).admit()


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
    """Append what the fast path has left of a request, of which all batches are admitted."""
    rest = take_done(batches, context.done)
    return TransactionalProduce(context, request, response, rest, transactional(rest)).append(())


class TransactionalProduce:
    """One request on its way to its logs. `batches` are all that it appends; those `wanted` are of one producer and
    belong to its transaction."""

    __slots__ = ("_batches", "_context", "_request", "_response", "_wanted")

    def __init__(
        self,
        context: Context,
        request: ProduceRequest,
        response: ProduceResponse,
        batches: list[PartitionBatch],
        wanted: list[PartitionBatch],
    ) -> None:
        self._context = context
        self._request = request
        self._response = response
        self._batches = batches
        self._wanted = wanted

    def admit(self) -> ProduceResponse | Coroutine[Any, Any, Any] | None:
        """Ask the coordinator about the batches that are wanted, and append what is not refused. Returns a coroutine if
        it must wait."""
        context, transactional_id, wanted = self._context, self._request.transactional_id, self._wanted
        assert transactional_id is not None
        operation = operation_of_produce(context.api_version)
        asked = logs_and_sequences(wanted)
        if context.done is not None:
            outcomes, flushes = context.done
        else:
            outcomes, flushes = ask_coordinator(
                context.broker, transactional_id, *self._producer(), asked, context.api_version
            )
        not_admitted = take_guards(wanted, outcomes)
        if not_admitted:
            if operation == ADDED and is_concurrent(outcomes):
                self._keep_records()
                return self._admit_later(asked)
            _refuse(not_admitted, operation)
        if context.broker.faults.armed or flushes:
            self._keep_records()
            return self._append_later(flushes)
        return self.append(frozenset(refused(wanted)))

    def append(
        self, noted: Collection[PartitionBatch]
    ) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse] | None:
        """Append. If a batch that is wanted is refused, other than those `noted`, the error is recorded in the history
        of its transactional id."""
        context, request = self._context, self._request
        answer = append(context, request.acks, self._response, self._batches)
        after = refused(self._wanted)
        if len(after) > len(noted):
            explanations = context.broker.transactions.explanations
            for batch in after:
                if batch not in noted:
                    explanations.refused("Produce", request.transactional_id, batch.error, context.received_ms)
        return answer

    async def _admit_later(self, asked: list[tuple[PartitionLog, int]]) -> ProduceResponse | None:
        broker, transactional_id = self._context.broker, self._request.transactional_id
        assert transactional_id is not None
        outcomes, flushes = await admit_patiently(
            broker.transactions, broker.clock, broker.config, transactional_id, *self._producer(), asked
        )
        _refuse(take_guards(self._wanted, outcomes), ADDED)
        return await self._append_later(flushes)

    async def _append_later(self, flushes: Flushes) -> ProduceResponse | None:
        """Append once the disk has the coordinator's record, as `flush.messages` requires. After a power cut, a batch
        without that record would belong to a transaction that no coordinator knows and would hang. A test may also hold
        the request here."""
        context, transactional_id, wanted = self._context, self._request.transactional_id, self._wanted
        try:
            await wait_for(flushes)
        except KafkaError as error:
            context.broker.transactions.note_refusal("Produce", transactional_id, error, self._producer())
            _refuse([(batch, error) for batch in wanted if batch.error is None], ADDED)
        await context.broker.faults.gate("produce.verified", transactional_id=transactional_id)
        context.received_ms = context.broker.clock.now_ms()  # LogAppendTime is that of the append
        answer = self.append(frozenset(refused(wanted)))
        if answer is None or isinstance(answer, ProduceResponse):
            return answer
        return await answer

    def _producer(self) -> tuple[int, int]:
        return self._wanted[0].producer_id, self._wanted[0].producer_epoch

    def _keep_records(self) -> None:
        """The views of the receive buffer are valid only during the call that handles the request."""
        for batch in self._batches:
            batch.records = bytearray(batch.records)


def _refuse(not_admitted: list[tuple[PartitionBatch, KafkaError]], operation: int) -> None:
    for batch, refusal in not_admitted:
        batch.error = as_produce_error(refusal, operation)
        batch.log = None  # these responses do not carry the log start offset
        if batch.error.code in _EXPLAINED:
            batch.answer.error_message = batch.error.message

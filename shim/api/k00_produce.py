"""Produce (key 0), versions 3-13; advertised from 0, as Kafka does for old librdkafka (KAFKA-18659).

Appends one batch per partition, each whole or not at all; every partition has its own outcome. acks 1 and -1 are the
same here (there is one replica), acks 0 gets no answer, and an error closes its connection, which is how such a client
learns of it. A transactional batch is admitted to its transaction first (B9); only that may wait, and only while the
transaction before is being ended. v5 log start offset. v7 allows zstd. v8 record errors and a message. v9 is flexible.
v10 leader hints (never sent here). v11, v12 differ in what happens to a partition that is not in the transaction
(KIP-890). v13 topic ids in place of names.
"""

from __future__ import annotations

import logging
from struct import Struct

from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.metadata.store import INTERNAL_TOPICS
from kafka_shim.outcome import wait_for
from kafka_shim.protocol.messages.produce_request import ProduceRequest
from kafka_shim.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_shim.storage.results import NotOneBatchError
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
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.broker import Context
    from kafka_shim.outcome import Flush, Flushes
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.verification import Verification
    from kafka_shim.txn.admission import Admission

logger = logging.getLogger("kafka_shim.request")

KEY, MIN, MAX = 0, 3, 13
REQUEST, RESPONSE = ProduceRequest, ProduceResponse

FIRST_WITH_TOPIC_IDS = 13
ADMIN_CLIENT_ID = "__admin_client"  # the one client that Kafka lets write to internal topics
HEADER_BYTES = 61
TRANSACTIONAL = 0x10
# magic; low byte of attributes; producer id, producer epoch, base sequence
_read_producer = Struct(">16xb5xB20xqhi").unpack_from

# Refusals of Kafka's log that do not tell the log start offset (ReplicaManager.appendToLocalLog).
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)


# Of the refusals before the log these carry a message (ReplicaManager.handleProduceAppend).
_EXPLAINED = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.NOT_ENOUGH_REPLICAS})


class _Batch:
    """One partition's part of a request: where it goes and what came of it."""

    __slots__ = ("answer", "error", "log", "records", "verification")

    def __init__(self, answer: PartitionProduceResponse, records: Any) -> None:
        self.answer = answer
        self.records = records
        self.log: PartitionLog | None = None
        self.error: KafkaError | None = None
        self.verification: Verification | None = None


def handle(context: Context, request: ProduceRequest) -> ProduceResponse | Coroutine[Any, Any, Any] | None:
    response, batches = _locate(context, request)
    transactional = [batch for batch in batches if _is_transactional(batch.records)]
    if not transactional:
        return _append(context, request.acks, response, batches)
    if request.transactional_id is None:
        logger.info("Produce of client %r refused: a transactional batch without a transactional id", context.client_id)
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    return _admit(context, request, response, batches, transactional)


def failed(request: ProduceRequest, version: int, code: ErrorCode, message: str | None) -> ProduceResponse:
    """Every partition gets the error, as ProduceRequest.getErrorResponse makes it; acks 0: the connection is closed."""
    if request.acks == 0:
        raise DisconnectError(f"Produce with acks=0 failed: {code.name}")
    response = ProduceResponse()
    for topic in request.topic_data:
        partitions = [
            PartitionProduceResponse(
                index=data.index, error_code=code, base_offset=-1, error_message=message if version >= 8 else None
            )
            for data in topic.partition_data
        ]
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
        )
    return response


def _locate(context: Context, request: ProduceRequest) -> tuple[ProduceResponse, list[_Batch]]:
    """The response to fill, and what to append. Of a partition that is named twice the last one counts, as in Kafka."""
    by_id = context.api_version >= FIRST_WITH_TOPIC_IDS
    response = ProduceResponse()
    topics: dict[str | bytes, list[PartitionProduceResponse]] = {}
    batches: dict[tuple[str | bytes, int], _Batch] = {}
    for topic in request.topic_data:
        if not topic.partition_data:
            continue
        key = topic.topic_id if by_id else topic.name
        answers = topics.get(key)
        if answers is None:
            entry = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            response.responses.append(entry)
            answers = topics[key] = entry.partition_responses
        for data in topic.partition_data:
            if (key, data.index) in batches:
                answers.remove(batches.pop((key, data.index)).answer)
            batch = _Batch(PartitionProduceResponse(index=data.index), data.records or b"")
            batches[key, data.index] = batch
            answers.append(batch.answer)
            try:
                batch.log = _find(context, key, data.index)
            except KafkaError as error:
                batch.error = error
            if data.records is None and batch.error is None:
                # Kafka stumbles over the null and leaves the request without an answer; a closed connection says more.
                raise DisconnectError("Produce without records")
    return response, list(batches.values())


def _find(context: Context, topic: str | bytes, partition: int) -> PartitionLog:
    broker = context.broker
    name = topic if isinstance(topic, str) else broker.metadata.topic_by_id(topic).name
    log = broker.logs.get(name, partition)
    if name in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    return log


def _is_transactional(records: Any) -> bool:
    # Magic and attributes of the first batch; a second one is refused anyway.
    if len(records) < HEADER_BYTES:
        return False
    return bool(records[16] == 2 and records[22] & TRANSACTIONAL)


def _admit(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[_Batch],
    transactional: list[_Batch],
) -> ProduceResponse | Coroutine[Any, Any, Any] | None:
    broker = context.broker
    explanations = broker.transactions.explanations
    for batch in transactional:
        if batch.error is not None:
            explanations.refused("Produce", request.transactional_id, batch.error, context.received_ms)
    located = [(batch, _read_producer(batch.records)) for batch in transactional if batch.error is None]
    # One without a producer id belongs to no transaction, whatever its attributes say: it is appended like any other.
    wanted = [batch for batch, header in located if header[2] >= 0]
    headers = [header for _, header in located if header[2] >= 0]
    producers = {(header[2], header[3]) for header in headers}
    if len(producers) > 1:
        refusal = KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
        explanations.refused("Produce", request.transactional_id, refusal, context.received_ms)
        raise refusal
    if not producers:
        return _append(context, request.acks, response, batches)
    assert request.transactional_id is not None
    producer_id, producer_epoch = producers.pop()
    asked = [(batch.log, header[4]) for batch, header in zip(wanted, headers, strict=True) if batch.log is not None]
    operation = operation_of_produce(context.api_version)
    outcomes, flushes = admit(
        broker.transactions,
        broker.config.transaction_partition_verification_enable,
        request.transactional_id,
        producer_id,
        producer_epoch,
        asked,
        operation,
    )
    if operation == ADDED and is_concurrent(outcomes):
        for batch in batches:
            # The views of the receive buffer end with this call.
            batch.records = bytearray(batch.records)
        return _admit_later(context, request, response, batches, wanted, asked, producer_id, producer_epoch)
    _take_outcomes(wanted, outcomes, operation)
    if broker.faults.armed or flushes:
        for batch in batches:
            batch.records = bytearray(batch.records)
        return _append_later(context, request, response, batches, wanted, flushes)
    return _append_admitted(context, request, response, batches, wanted)


async def _append_later(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[_Batch],
    wanted: list[_Batch],
    flushes: Flushes,
) -> ProduceResponse | None:
    """Append when the disk has what `flush.messages` wants of the coordinator's record: a batch without it would hang
    after a power cut, in a transaction that nobody knows. A test may hold the request here as well."""
    if flushes:
        await wait_for(flushes)
    await context.broker.faults.gate("produce.verified", transactional_id=request.transactional_id)
    answer = _append_admitted(context, request, response, batches, wanted)
    if answer is None or isinstance(answer, ProduceResponse):
        return answer
    return await answer


def _append_admitted(
    context: Context, request: ProduceRequest, response: ProduceResponse, batches: list[_Batch], wanted: list[_Batch]
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse] | None:
    """Append; what the log refuses of the transactional batches goes into the history of their transactional id."""
    admitted = [batch for batch in wanted if batch.error is None]
    answer = _append(context, request.acks, response, batches)
    for batch in admitted:
        if batch.error is not None:
            explanations = context.broker.transactions.explanations
            explanations.refused("Produce", request.transactional_id, batch.error, context.received_ms)
    return answer


async def _admit_later(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[_Batch],
    wanted: list[_Batch],
    asked: list[tuple[PartitionLog, int]],
    producer_id: int,
    producer_epoch: int,
) -> ProduceResponse | None:
    broker = context.broker
    assert request.transactional_id is not None
    outcomes, flushes = await admit_patiently(
        broker.transactions, broker.clock, broker.config, request.transactional_id, producer_id, producer_epoch, asked
    )
    _take_outcomes(wanted, outcomes, ADDED)
    return await _append_later(context, request, response, batches, wanted, flushes)


def _take_outcomes(wanted: list[_Batch], outcomes: list[Admission], operation: int) -> None:
    for batch, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, KafkaError):
            batch.error = as_produce_error(outcome, operation)
            batch.log = None  # these answers do not tell the log start offset
            if batch.error.code in _EXPLAINED:
                batch.answer.error_message = batch.error.message
        else:
            batch.verification = outcome


def _append(
    context: Context, acks: int, response: ProduceResponse, batches: list[_Batch]
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse] | None:
    version, broker = context.api_version, context.broker
    now_ms = context.received_ms
    failures = None
    flushes: list[tuple[_Batch, Flush]] | None = None
    valid_acks = -1 <= acks <= 1
    for batch in batches:
        log, answer = batch.log, batch.answer
        if batch.error is None and not valid_acks:
            batch.error = KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if batch.error is None:
            assert log is not None
            try:
                appended = log.append_as_leader(
                    batch.records, now_ms=now_ms, version=version, verification=batch.verification
                )
            except KafkaError as error:
                batch.error = error
            except Exception:
                # A bug; the other partitions are appended all the same, and their producer must hear of it.
                logger.exception("append to %s-%d failed", log.topic, log.partition)
                broker.metrics.errors_unexpected += 1
                batch.error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                answer.base_offset = appended.base_offset
                answer.log_append_time_ms = appended.append_time_ms
                answer.log_start_offset = appended.log_start_offset
                broker.metrics.appended_bytes += appended.size_bytes
                if appended.flushed is not None:
                    flushes = [] if flushes is None else flushes
                    flushes.append((batch, appended.flushed))
                continue
        _refuse(batch)
        failures = [] if failures is None else failures
        failures.append(batch)
    if acks == 0:
        if failures is not None:
            reasons = ", ".join(f"{batch.answer.index}: {batch.error}" for batch in failures)
            raise DisconnectError(f"Produce with acks=0 failed: {reasons}")
        return None
    if flushes is not None:
        return _after_flush(response, flushes)
    return response


def _refuse(batch: _Batch) -> None:
    error, answer, log = batch.error, batch.answer, batch.log
    assert error is not None
    answer.error_code = error.code
    answer.base_offset = -1
    record_errors = getattr(error, "record_errors", None)
    if record_errors is not None:
        answer.error_message = error.message
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in record_errors
        ]
    if log is not None and error.code not in _WITHOUT_LOG_START and not isinstance(error, NotOneBatchError):
        answer.log_start_offset = log.log_start_offset


async def _after_flush(response: ProduceResponse, flushes: list[tuple[_Batch, Flush]]) -> ProduceResponse:
    """With `flush.messages` the batch is on the disk before its producer hears of it; a partition whose fsync failed is
    refused, the others are answered."""
    import asyncio

    for batch, flush in flushes:
        try:
            await asyncio.wrap_future(flush)
        except OSError as err:
            assert batch.log is not None
            batch.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{batch.log.name} cannot be flushed: {err}")
            batch.answer.log_append_time_ms = -1
            _refuse(batch)
    return response

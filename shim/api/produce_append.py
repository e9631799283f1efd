"""Appends the batches of one Produce. Each partition has its own result (Kafka: appendToLocalLog)."""

from __future__ import annotations

import logging

from kafka_shim.cext.many_logs import Produced
from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.outcome import wait_for_one
from kafka_shim.protocol.messages.produce_request import PartitionProduceData
from kafka_shim.protocol.messages.produce_response import BatchIndexAndErrorMessage, PartitionProduceResponse
from kafka_shim.storage.plain_log import append_each
from kafka_shim.storage.results import NotOneBatchError
from kafka_shim.storage.validation import check_framing as check_framing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine
    from typing import Any

    from kafka_shim.cext.log_base import Appended, Verification
    from kafka_shim.cext.many_logs import PartitionBatch
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.messages.produce_response import ProduceResponse

    # Of one batch: (base offset, log start offset) of its append, its guard, or its error.
    Done = tuple[int, int] | Verification | Exception | None

logger = logging.getLogger("kafka_shim.request")

# Errors of Kafka's log whose responses do not carry the log start offset (ReplicaManager.appendToLocalLog).
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


# What the log line of a failed request without a response names.
MOST_FAILURES_SHOWN = 10


# The rows of requests and of responses.
made = Produced(PartitionProduceData, PartitionProduceResponse)


def append(
    context: Context, acks: int, response: ProduceResponse, batches: list[PartitionBatch]
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse] | None:
    """Append every batch that was not refused yet. Returns the response, None for acks 0, or a coroutine if the
    response must wait for fsyncs."""
    failures: list[PartitionBatch] = []
    flushes: list[tuple[PartitionBatch, Flush]] = []
    append_some(context, acks, batches, failures, flushes)
    return after_append(acks, response, failures, flushes)


def take_done(batches: list[PartitionBatch], done: list[Done]) -> list[PartitionBatch]:
    """Take over what the fast path has done of a request (`cext.plain_produce`): an entry for each batch, in order.
    Returns those that are not appended; some have an error now."""
    left = []
    for batch, outcome in zip(batches, done, strict=True):
        if isinstance(outcome, tuple):
            batch.answer.base_offset, batch.answer.log_start_offset = outcome
            continue
        if isinstance(outcome, Exception):
            batch.error = outcome.without_frames() if isinstance(outcome, KafkaError) else outcome
        else:
            batch.verification = outcome
        left.append(batch)
    return left


def append_some(
    context: Context,
    acks: int,
    batches: list[PartitionBatch],
    failures: list[PartitionBatch],
    flushes: list[tuple[PartitionBatch, Flush]],
) -> None:
    """Append these batches of a request. Adds those that failed to `failures`, and what the response waits for to
    `flushes`."""
    version, broker = context.api_version, context.broker
    now_ms = context.received_ms
    valid_acks = -1 <= acks <= 1
    if valid_acks and not broker.faults.armed:
        batches, size_bytes = append_each(made, batches, now_ms)
        broker.metrics.appended_bytes += size_bytes
    for batch in batches:
        log = batch.log
        if batch.error is None and not valid_acks:
            batch.error = _badly_framed(batch, version) or KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if batch.error is None and batch.is_internal:
            assert log is not None
            batch.error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {log.topic}")
        if batch.error is None:
            appended = _append_checked(batch, version, now_ms)
            if appended is not None:
                broker.metrics.appended_bytes += appended.size_bytes
                if appended.flushed is not None:
                    flushes.append((batch, appended.flushed))
                continue
        if not isinstance(batch.error, KafkaError):
            # A bug. The other partitions are still appended, and their producer must get their results.
            assert log is not None
            logger.error("append to %s-%d failed", log.topic, log.partition, exc_info=batch.error)
            broker.metrics.errors_unexpected += 1
            batch.error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        _refuse(batch)
        failures.append(batch)


def _append_checked(batch: PartitionBatch, version: int, now_ms: int) -> Appended | None:
    """Append a batch, and note that in its answer. Returns None if it has an error then."""
    log, answer = batch.log, batch.answer
    assert log is not None
    try:  # in a function of its own, which is short: `QuickCompletion.quick_steps`
        appended: Appended = log.append_checked(
            batch.records, now_ms=now_ms, version=version, verification=batch.verification, checked=batch.checked
        )
    except KafkaError as error:
        batch.error = error.without_frames()
        return None
    except DisconnectError:
        raise  # a fault point has the response lost
    except Exception as error:
        batch.error = error
        return None
    answer.base_offset = appended.base_offset
    answer.log_append_time_ms = appended.append_time_ms
    answer.log_start_offset = appended.log_start_offset
    return appended


def check_framing(batches: Collection[PartitionBatch], version: int) -> None:
    """Refuse what Kafka refuses before it asks anybody about a batch (ProduceRequest.validateRecords)."""
    for batch in batches:
        if batch.error is None:
            batch.error = _badly_framed(batch, version)
            if batch.error is not None:
                _refuse(batch)


def _badly_framed(batch: PartitionBatch, version: int) -> KafkaError | None:
    assert batch.log is not None
    try:
        check_framing_of(batch.records, batch.log.name, version, batch.log.config)
    except KafkaError as error:
        return error.without_frames()
    return None


def after_append(
    acks: int,
    response: ProduceResponse,
    failures: list[PartitionBatch],
    flushes: list[tuple[PartitionBatch, Flush]],
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse] | None:
    """Returns what `append` returns, once all batches are appended. Raises DisconnectError for a failure of a request
    with acks 0, which has no response."""
    if acks == 0:
        if failures:
            shown = failures[:MOST_FAILURES_SHOWN]
            reasons = ", ".join(f"{batch.answer.index}: {batch.error}" for batch in shown)
            more = len(failures) - len(shown)
            raise DisconnectError(f"Produce with acks=0 failed: {reasons}{f' and {more} more' if more else ''}")
        return None
    if flushes:
        return _after_flush(response, flushes)
    return response


def _refuse(batch: PartitionBatch) -> None:
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


async def _after_flush(response: ProduceResponse, flushes: list[tuple[PartitionBatch, Flush]]) -> ProduceResponse:
    """With `flush.messages` the response waits until the batches are on the disk. A partition whose fsync failed gets
    an error; the others succeed."""
    for batch, flush in flushes:
        try:
            await wait_for_one(flush)
        except OSError as err:
            assert batch.log is not None
            batch.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{batch.log.name} cannot be flushed: {err}")
            batch.answer.log_append_time_ms = -1
            _refuse(batch)
    return response

"""Produce (key 0), versions 3-13; advertised from 0, as Kafka does for old librdkafka (KAFKA-18659).

Appends one batch per partition, each whole or not at all. Every partition has its own result. acks 1 and -1 are the
same here, because there is one replica. acks 0 gets no response, and an error closes the connection, which is how such
a client learns of it. A transactional batch is first admitted to its transaction (B9). That may wait, while the
previous transaction is being completed; and so may a batch that takes long to decompress, which a thread checks first.
v5 log start offset. v7 allows zstd. v8 record errors and an error message. v9 is flexible. v10 leader hints (never sent
here). v11, v12 differ in the handling of a partition that is not in the transaction (KIP-890). v13 topic ids in place
of names.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial

from kafka_shim.api.produce_append import after_append, append, append_some, made
from kafka_shim.api.produce_checks import check_then, long_ones
from kafka_shim.api.transactional_produce import admit_and_append, append_rest, ask_coordinator
from kafka_shim.authorization import require
from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.many_logs import are_plain, in_order, transactional
from kafka_shim.cext.plain_produce import PlainProduce
from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.protocol.messages.produce_request import ProduceRequest
from kafka_shim.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_shim.security.acl import TOPIC, TRANSACTIONAL_ID, WRITE
from kafka_shim.storage.producers import CACHED_BATCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from kafka_shim.cext.many_logs import PartitionBatch
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.messages.produce_request import PartitionProduceData, TopicProduceData
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.turns import Steps

    # By the name or the id of a topic, as the request has it; the second also by partition.
    Answers = dict[str | bytes, list[PartitionProduceResponse]]
    Found = dict[tuple[str | bytes, int], PartitionBatch]
    Indexes = dict[str | bytes, dict[int, None]]

logger = logging.getLogger("kafka_shim.request")

KEY, MIN, MAX = 0, 3, 13
REQUEST, RESPONSE = ProduceRequest, ProduceResponse
PLAIN = PlainProduce(cext_segment, INTERNAL_TOPICS, CACHED_BATCHES, ask_coordinator)

FIRST_WITH_TOPIC_IDS = 13
ADMIN_CLIENT_ID = "__admin_client"  # the only client id that Kafka lets write to internal topics


def handle(
    context: Context, request: ProduceRequest
) -> ProduceResponse | Coroutine[Any, Any, Any] | Steps[ProduceResponse | None] | None:
    if context.is_large:
        return _in_steps(context, request)
    response = ProduceResponse()
    answers: Answers = {}
    found: Found = {}
    for topic in request.topic_data:
        _locate(context, topic, topic.partition_data, response, answers, found)
    batches = in_order(answers, found)
    if isinstance(context.done, list):
        return append_rest(context, request, response, batches)
    if not are_plain(batches):
        long = long_ones(batches)
        if long:
            return check_then(context, batches, long, partial(_append, context, request, response, batches))
    return _append(context, request, response, batches)


def _append(
    context: Context, request: ProduceRequest, response: ProduceResponse, batches: list[PartitionBatch]
) -> ProduceResponse | Coroutine[Any, Any, Any] | None:
    of_transactions = transactional(batches)
    if of_transactions:
        return _append_transactional(context, request, response, batches, of_transactions)
    return append(context, request.acks, response, batches)


def _append_transactional(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: list[PartitionBatch],
    of_transactions: list[PartitionBatch],
) -> ProduceResponse | Coroutine[Any, Any, Any] | None:
    if request.transactional_id is None:
        logger.info("Produce of client %r refused: a transactional batch without a transactional id", context.client_id)
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None)
    require(context, WRITE, TRANSACTIONAL_ID, request.transactional_id)
    return admit_and_append(context, request, response, batches, of_transactions)


def failed(request: ProduceRequest, version: int, code: ErrorCode, message: str | None) -> Steps[ProduceResponse]:
    """Every partition gets the error, once, as in ProduceRequest.getErrorResponse. With acks 0 the connection is
    closed."""
    if request.acks == 0:
        raise DisconnectError(f"Produce with acks=0 failed: {code.name}")
    response = ProduceResponse()
    indexes = yield from _indexes(request, version, response)
    for entry, of_topic in zip(response.responses, indexes.values(), strict=True):
        for index in of_topic:
            answer = PartitionProduceResponse(index=index, error_code=code, base_offset=-1)
            if version >= 8:
                answer.error_message = message
            entry.partition_responses.append(answer)
            yield
    return response


def _indexes(request: ProduceRequest, version: int, response: ProduceResponse) -> Steps[Indexes]:
    """Add the request's topics to the response, each once. Returns the indexes of their partitions, in that order."""
    indexes: Indexes = {}
    for topic in request.topic_data:
        key = topic.topic_id if version >= FIRST_WITH_TOPIC_IDS else topic.name
        if key not in indexes and topic.partition_data:
            indexes[key] = {}
            response.responses.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id))
        for data in topic.partition_data:
            indexes[key][data.index] = None
            yield
    return indexes


def _in_steps(context: Context, request: ProduceRequest) -> Steps[Any]:
    """A request with thousands of partitions: each is located and appended in a step of its own, unless there is a
    transaction."""
    response = ProduceResponse()
    of_transactions: list[PartitionBatch] = []
    long: list[PartitionBatch] = []
    batches = yield from _locate_in_steps(context, request, response, of_transactions, long)
    rest = _append_in_steps(context, request, response, batches, of_transactions)
    if long:
        return check_then(context, (), long, partial(context.broker.turns.run, rest, context.throttle))
    return (yield from rest)


def _locate_in_steps(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    of_transactions: list[PartitionBatch],
    long: list[PartitionBatch],
) -> Steps[deque[PartitionBatch]]:
    """Returns the batches in the order of the response. Those of transactions and those that take long to check are
    added to their lists, too."""
    answers: Answers = {}
    found: Found = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            _locate(context, topic, (data,), response, answers, found)
            yield
    # What is done is let go in each step: to free thousands of objects takes its time, too.
    rows = deque(found.items())
    found.clear()
    batches: deque[PartitionBatch] = deque()
    while rows:
        (key, _), batch = rows.popleft()
        answers[key].append(batch.answer)
        batches.append(batch)
        if batch.is_transactional:
            of_transactions.append(batch)
        long += long_ones((batch,))
        yield
    return batches


def _append_in_steps(
    context: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    batches: deque[PartitionBatch],
    of_transactions: list[PartitionBatch],
) -> Steps[Any]:
    # The time of LogAppendTime is that of the append: others append between two steps, and times ascend with offsets.
    clock = context.broker.clock
    context.received_ms = clock.now_ms()
    if of_transactions:
        return _append_transactional(context, request, response, list(batches), of_transactions)
    failures: list[PartitionBatch] = []
    flushes: list[tuple[PartitionBatch, Flush]] = []
    while batches:
        context.received_ms = clock.now_ms()
        append_some(context, request.acks, [batches.popleft()], failures, flushes)
        if request.acks:
            failures.clear()  # each is in the response; only without one they close the connection
        yield
    return after_append(request.acks, response, failures, flushes)


def _locate(
    context: Context,
    topic: TopicProduceData,
    partitions: Sequence[PartitionProduceData],
    response: ProduceResponse,
    answers: Answers,
    found: Found,
) -> None:
    """Find the logs of these partitions of the topic. Adds the topic to `response` and its list to `answers`, by its
    name or id, and the batches to `found`. If a partition is named twice the last one counts, as in Kafka."""
    key = topic.topic_id if context.api_version >= FIRST_WITH_TOPIC_IDS else topic.name
    if partitions and key not in answers:
        entry = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        answers[key] = entry.partition_responses
        response.responses.append(entry)
    name = _plain_name(context, key)
    for batch, has_no_records in made.locate(partitions, key, context.broker.logs.partitions.loaded, name, found):
        if batch.log is None and not _has_log(context, key, batch):
            continue
        if has_no_records:
            # Kafka fails on null records and sends no response. Here the connection is closed, which is clearer to
            # the client.
            raise DisconnectError("Produce: the records of a partition are null")


def _has_log(context: Context, topic: str | bytes, batch: PartitionBatch) -> bool:
    """Give the batch its log, or the error that refuses it one."""
    try:
        batch.log = log = _find(context, topic, batch.answer.index)
    except KafkaError as error:
        # Its frames would be kept too, for each of thousands of partitions.
        batch.error = error.without_frames()
        return False
    batch.is_internal = log.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID
    return True


def _plain_name(context: Context, topic: str | bytes) -> str | None:
    """Returns the topic's name if a client may write to each of its partitions that is open; None if `_find` must
    decide."""
    broker = context.broker
    if broker.authorizer is not None:
        return None
    if isinstance(topic, bytes):
        try:
            topic = broker.metadata.topic_by_id(topic).name
        except KafkaError:
            return None
    return None if topic in INTERNAL_TOPICS else topic


def _find(context: Context, topic: str | bytes, partition: int) -> PartitionLog:
    broker = context.broker
    name = topic if isinstance(topic, str) else broker.metadata.topic_by_id(topic).name
    if broker.authorizer is not None:
        require(context, WRITE, TOPIC, name)
    return broker.logs.get(name, partition)

"""AddPartitionsToTxn (key 24), versions 0-5.

Begins or extends a transaction. One bad partition fails the transaction's whole list: it has its own error, the others
have OPERATION_NOT_ATTEMPTED (B8). v0-3 come from clients and have one transaction. v2 returns PRODUCER_FENCED where
older versions return INVALID_PRODUCER_EPOCH. v3 is flexible. v4-5 come from brokers: many transactions, `verifyOnly`
(KIP-890); v5 may return TRANSACTION_ABORTABLE. A transaction begun by v4 or newer has level 2.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps, is_authorized, require_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.java_order import bucket, order_strings, scala_table_size, spread, table_size, topic_partition_hash
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_shim.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kafka_shim.security.acl import CLUSTER_ACTION, TOPIC, TRANSACTIONAL_ID, WRITE
from kafka_shim.turns import at_once
from kafka_shim.txn.transaction import TV0, TV2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush
    from kafka_shim.turns import Steps
    from kafka_shim.txn.transaction import TopicPartition

KEY, MIN, MAX = 24, 0, 5
REQUEST, RESPONSE = AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

FIRST_OF_BROKERS = 4
PARTITIONS_PER_STEP = 64
# Partitions that are encoded in a step of their own.
MANY = 1000


def handle(
    context: Context, request: AddPartitionsToTxnRequest
) -> Outcome[AddPartitionsToTxnResponse] | Steps[Outcome[AddPartitionsToTxnResponse]]:
    steps = _in_steps(context, request)
    return steps if context.is_large else at_once(steps)


def failed(
    request: AddPartitionsToTxnRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[AddPartitionsToTxnResponse]:
    """Returns the error at the top level or, below version 4, in each partition."""
    if version >= FIRST_OF_BROKERS:
        return AddPartitionsToTxnResponse(error_code=code)
    response = AddPartitionsToTxnResponse()
    for topic in request.v3_and_below_topics:
        result = AddPartitionsToTxnTopicResult(name=topic.name)
        response.results_by_topic_v3_and_below.append(result)
        for partition in topic.partitions:
            result.results_by_partition.append(
                AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
            )
            yield
        yield
    return response


def _in_steps(context: Context, request: AddPartitionsToTxnRequest) -> Steps[Outcome[AddPartitionsToTxnResponse]]:
    """Each transaction is decided in one step, and its partitions are looked up and answered in others."""
    flushes: list[Flush] = []
    if context.api_version >= FIRST_OF_BROKERS:
        require_on_cluster(context, CLUSTER_ACTION)
        results = yield from _add_each(context, request.transactions, flushes)
        return Outcome(AddPartitionsToTxnResponse(results_by_transaction=results), flushes)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    topics = yield from _add(context, transaction, transaction.topics, transaction.topics, TV0, flushes)
    return Outcome(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics), flushes)


def _add_each(
    context: Context, transactions: Sequence[AddPartitionsToTxnTransaction], flushes: list[Flush]
) -> Steps[list[AddPartitionsToTxnResult]]:
    """What comes twice is added, or verified, with the partitions of the last; a code for all is listed as the first
    (AddPartitionsToTxnRequest.partitionsByTransaction, errorResponseForTransaction)."""
    results = []
    last = {one.transactional_id: one.topics for one in transactions}
    first = {one.transactional_id: one.topics for one in reversed(transactions)}
    for one in transactions:
        name = one.transactional_id
        found = yield from _add(context, one, last[name], first[name], TV2, flushes)
        results.append(AddPartitionsToTxnResult(transactional_id=name, topic_results=found))
        yield
    return results


def _add(
    context: Context,
    transaction: AddPartitionsToTxnTransaction,
    topics: Sequence[AddPartitionsToTxnTopic],
    listed: Sequence[AddPartitionsToTxnTopic],
    client_version: int,
    flushes: list[Flush],
) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    """Add or verify the partitions of `topics`; the answer lists those of `listed` if they have one code."""
    partitions = yield from _distinct(topics)
    is_of_client = context.api_version < FIRST_OF_BROKERS
    if is_of_client and not is_authorized(context, WRITE, TRANSACTIONAL_ID, transaction.transactional_id):
        return (yield from _results(listed, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    codes = yield from _refused_partitions(context, topics)
    if codes:
        return (yield from _refuse(context, transaction, partitions, codes))
    return (yield from _add_existing(context, transaction, partitions, listed, client_version, flushes))


def _add_existing(
    context: Context,
    transaction: AddPartitionsToTxnTransaction,
    partitions: Collection[TopicPartition],
    listed: Sequence[AddPartitionsToTxnTopic],
    client_version: int,
    flushes: list[Flush],
) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    wanted = frozenset(partitions)
    if len(wanted) > MANY:
        yield
        context.broker.transactions.prepare_partitions(transaction.transactional_id, wanted)
        yield
    code, missing = _decide(context, transaction, wanted, client_version, flushes)
    if not transaction.verify_only:
        return (yield from _results(listed, code))
    return (
        yield from _results_of_map(
            partitions,
            lambda partition: ErrorCode.TRANSACTION_ABORTABLE if partition in missing else code,
            table_size(len(partitions)),
        )
    )


def _distinct(topics: Sequence[AddPartitionsToTxnTopic]) -> Steps[dict[TopicPartition, None]]:
    """Returns the partitions, each once, in the order of the request."""
    partitions: dict[TopicPartition, None] = {}
    for topic, some in _parts(topics):
        partitions.update(((topic.name, partition), None) for partition in some)
        yield
    return partitions


def _refuse(
    context: Context,
    transaction: AddPartitionsToTxnTransaction,
    partitions: Collection[TopicPartition],
    codes: dict[TopicPartition, ErrorCode],
) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    """Record the first of these codes in the history of the transactional id, and list all."""
    name, index = min(codes)
    code = codes[name, index]
    why = "do not exist" if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else "are refused"
    reason = f"{len(codes)} of {len(partitions)} partitions {why}, the first is {name}-{index}"
    producer = transaction.producer_id, transaction.producer_epoch
    context.broker.transactions.note_refusal(
        "AddPartitionsToTxn", transaction.transactional_id, KafkaError(code, reason), producer
    )
    return (
        yield from _results_of_map(
            partitions,
            lambda one: codes.get(one, ErrorCode.OPERATION_NOT_ATTEMPTED),
            scala_table_size(len(partitions)),
            is_scala=True,
        )
    )


def _decide(
    context: Context,
    transaction: AddPartitionsToTxnTransaction,
    wanted: frozenset[TopicPartition],
    client_version: int,
    flushes: list[Flush],
) -> tuple[ErrorCode, Collection[TopicPartition]]:
    """Add the partitions, or verify them. Returns the code for all, and those that are not in the transaction."""
    transactions = context.broker.transactions
    producer = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
    code = ErrorCode.NONE
    missing: Collection[TopicPartition] = ()
    try:
        if transaction.verify_only:
            missing = transactions.missing_partitions(*producer, wanted)
        else:
            flushes += transactions.add_partitions(*producer, wanted, client_version)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.UNSUPPORTED_VERSION:
            raise  # Kafka throws: the answer has this code alone
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < 2:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
    return code, missing


def _refused_partitions(
    context: Context, topics: Sequence[AddPartitionsToTxnTopic]
) -> Steps[dict[TopicPartition, ErrorCode]]:
    """Returns the partitions that do not exist, or to which the client may not write."""
    image = context.broker.metadata.image
    allowed: Collection[str] | None = None
    if context.api_version < FIRST_OF_BROKERS:
        # No client adds an internal topic by name. AddOffsetsToTxn adds the group's partition.
        asked = (topic.name for topic in topics if topic.name not in INTERNAL_TOPICS)
        allowed = yield from authorized_in_steps(context, WRITE, TOPIC, asked)
    codes: dict[TopicPartition, ErrorCode] = {}
    for topic, some in _parts(topics):
        for partition in some:
            if allowed is not None and topic.name not in allowed:
                codes[topic.name, partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(topic.name, partition) is None:
                codes[topic.name, partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield
    return codes


def _parts(
    topics: Sequence[AddPartitionsToTxnTopic],
) -> Iterator[tuple[AddPartitionsToTxnTopic, Sequence[int]]]:
    for topic in topics:
        for start in range(0, len(topic.partitions) or 1, PARTITIONS_PER_STEP):
            yield topic, topic.partitions[start : start + PARTITIONS_PER_STEP]


def _results(topics: Sequence[AddPartitionsToTxnTopic], code: ErrorCode) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    """One code for all, listed as in the request."""
    results: list[AddPartitionsToTxnTopicResult] = []
    last = None
    for topic, some in _parts(topics):
        if topic is not last:
            results.append(AddPartitionsToTxnTopicResult(name=topic.name))
            last = topic
        results[-1].results_by_partition += [
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
            for partition in some
        ]
        yield
    return results


def _results_of_map(
    partitions: Iterable[TopicPartition],
    code_of: Callable[[TopicPartition], ErrorCode],
    map_size: int,
    *,
    is_scala: bool = False,
) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    """Kafka keeps codes that differ in a hash map of `map_size` buckets (AddPartitionsToTxnResponse.
    resultForTransaction): each partition is listed once, no topic without partitions, in the order of the map."""
    buckets = yield from _in_buckets(partitions, map_size)
    results: dict[str, AddPartitionsToTxnTopicResult] = {}
    for number in range(map_size):
        found = buckets.get(number, [])
        if is_scala and len(found) > 1:
            found.sort(key=lambda each: spread(topic_partition_hash(*each)))
        for name, partition in found:
            if name not in results:
                results[name] = AddPartitionsToTxnTopicResult(name=name)
            results[name].results_by_partition.append(
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=code_of((name, partition))
                )
            )
        if number % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
            yield
    return [results[name] for name in order_strings(results)]


def _in_buckets(partitions: Iterable[TopicPartition], map_size: int) -> Steps[dict[int, list[TopicPartition]]]:
    buckets: dict[int, list[TopicPartition]] = {}
    for number, one in enumerate(partitions):
        buckets.setdefault(bucket(topic_partition_hash(*one), map_size), []).append(one)
        if number % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
            yield
    return buckets

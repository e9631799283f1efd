"""AddPartitionsToTxn (key 24), versions 0-5.

Begins or extends a transaction. One bad partition fails the transaction's whole list: it has its own error, the others
have OPERATION_NOT_ATTEMPTED (B8). v0-3 come from clients and have one transaction. v2 returns PRODUCER_FENCED where
older versions return INVALID_PRODUCER_EPOCH. v3 is flexible. v4-5 come from brokers: many transactions, `verifyOnly`
(KIP-890); v5 may return TRANSACTION_ABORTABLE. A transaction begun by v4 or newer has level 2.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized, is_authorized, require_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kafka_shim.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.txn.transaction import TV0, TV2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kafka_shim.context import Context
    from kafka_shim.outcome import Flush
    from kafka_shim.txn.transaction import TopicPartition

KEY, MIN, MAX = 24, 0, 5
REQUEST, RESPONSE = AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

FIRST_OF_BROKERS = 4


def handle(context: Context, request: AddPartitionsToTxnRequest) -> Outcome[AddPartitionsToTxnResponse]:
    flushes: list[Flush] = []
    if context.api_version >= FIRST_OF_BROKERS:
        require_on_cluster(context, AclOperation.CLUSTER_ACTION)
        results = [
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=_add(context, transaction, TV2, flushes)
            )
            for transaction in request.transactions
        ]
        return Outcome(AddPartitionsToTxnResponse(results_by_transaction=results), flushes)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    topics = _add(context, transaction, TV0, flushes)
    return Outcome(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics), flushes)


def _add(
    context: Context, transaction: AddPartitionsToTxnTransaction, client_version: int, flushes: list[Flush]
) -> list[AddPartitionsToTxnTopicResult]:
    image = context.broker.metadata.image
    partitions = frozenset((topic.name, partition) for topic in transaction.topics for partition in topic.partitions)
    names = {topic.name for topic in transaction.topics}
    allowed: Collection[str] = names
    if context.api_version < FIRST_OF_BROKERS:
        if not is_authorized(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id):
            return _results(transaction, lambda partition: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        # No client adds an internal topic by name. AddOffsetsToTxn adds the group's partition.
        allowed = authorized(context, AclOperation.WRITE, ResourceType.TOPIC, names - INTERNAL_TOPICS)
    codes = {
        partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition[0] in allowed
        else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for partition in partitions
        if partition[0] not in allowed or image.partition(*partition) is None
    }
    transactions = context.broker.transactions
    producer = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
    if codes:
        topic, index = min(codes)
        code = codes[topic, index]
        why = "do not exist" if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else "are refused"
        reason = f"{len(codes)} of {len(partitions)} partitions {why}, the first is {topic}-{index}"
        transactions.note_refusal("AddPartitionsToTxn", producer[0], KafkaError(code, reason), producer[1:])
        return _results(transaction, lambda partition: codes.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED))
    try:
        if not transaction.verify_only:
            flushes += transactions.add_partitions(*producer, partitions, client_version)
            return _results(transaction, lambda partition: ErrorCode.NONE)
        missing = transactions.missing_partitions(*producer, partitions)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < 2:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return _results(transaction, lambda partition: code)
    return _results(
        transaction,
        lambda partition: ErrorCode.TRANSACTION_ABORTABLE if partition in missing else ErrorCode.NONE,
    )


def _results(
    transaction: AddPartitionsToTxnTransaction, code_of: Callable[[TopicPartition], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=code_of((topic.name, partition))
                )
                for partition in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]

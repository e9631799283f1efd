"""DescribeTransactions (key 65), version 0.

Returns state, timeout, start and partitions of transactional ids (KIP-664; B19). An unknown id gets
TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST.

If a request has the tagged field `EXPLAIN_TAG`, the response has the history of each id, unknown ones too, in a tagged
field of the same number, as lines of UTF-8 (ADR 0012), without topics that the client may not describe. Kafka's clients
never send it, and Kafka ignores it.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps, require, topics_described_by
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.own_tags import EXPLAIN_TAG
from kafka_shim.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_shim.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.txn.transaction import STATE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps
    from kafka_shim.txn.coordinator import TransactionCoordinator

KEY, MIN, MAX = 65, 0, 0
REQUEST, RESPONSE = DescribeTransactionsRequest, DescribeTransactionsResponse
ABANDONABLE = True

PARTITIONS_PER_STEP = 256


def handle(context: Context, request: DescribeTransactionsRequest) -> Steps[DescribeTransactionsResponse]:
    transactions = context.broker.transactions
    states: list[TransactionState] = []
    for name in request.transactional_ids:
        states.append((yield from _describe(context, transactions, name)))
        yield
    if request.unknown_tags and EXPLAIN_TAG in request.unknown_tags:
        may_describe = topics_described_by(context)
        explained = set[str]()  # an id that is asked for a thousand times has one history
        for found in states:
            name = found.transactional_id
            if found.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED or name in explained:
                continue
            explained.add(name)
            lines = transactions.explanations.lines(name, may_describe, context.broker.metadata.image.topics)
            found.unknown_tags = {EXPLAIN_TAG: "\n".join(lines).encode()}
            yield
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(context: Context, transactions: TransactionCoordinator, transactional_id: str) -> Steps[TransactionState]:
    """The transaction is described as it is in the first step."""
    try:
        require(context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        txn = transactions.describe(transactional_id)
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    by_topic: dict[str, list[int]] = {}
    for number, (topic, partition) in enumerate(txn.partitions, 1):
        by_topic.setdefault(topic, []).append(partition)
        if number % PARTITIONS_PER_STEP == 0:
            yield
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, by_topic)
    topics: list[TopicData] = []
    for topic in sorted(by_topic):
        if topic in described:
            topics.append(TopicData(topic=topic, partitions=sorted(by_topic[topic])))
            yield
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=STATE_NAMES[txn.state],
        transaction_timeout_ms=txn.timeout_ms,
        transaction_start_time_ms=txn.start_ms,
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        topics=topics,
    )

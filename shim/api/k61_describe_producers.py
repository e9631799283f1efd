"""DescribeProducers (key 61), version 0.

Returns the active producers of a partition's log, with the start offset of an open transaction. `kafka-transactions`
uses it to find hanging transactions (KIP-664; B19). An unknown topic or partition gets UNKNOWN_TOPIC_OR_PARTITION, an
invalid name INVALID_TOPIC_EXCEPTION. As in Kafka, an unknown partition of a topic that exists has no error message.
"""

from __future__ import annotations

from kafka_shim.authorization import is_authorized
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.topics import UNKNOWN_TOPIC_MESSAGE, check_name
from kafka_shim.protocol.messages.describe_producers_request import DescribeProducersRequest
from kafka_shim.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 61, 0, 0
REQUEST, RESPONSE = DescribeProducersRequest, DescribeProducersResponse
ABANDONABLE = True

PRODUCERS_PER_STEP = 64


def handle(context: Context, request: DescribeProducersRequest) -> Steps[DescribeProducersResponse]:
    response = DescribeProducersResponse()
    for topic in request.topics:
        partitions: list[PartitionResponse] = []
        response.topics.append(TopicResponse(name=topic.name, partitions=partitions))
        # Once for all partitions, as in Kafka: also the log has one line, and the error one text.
        refusal = _refusal(context, topic.name)
        for partition in topic.partition_indexes:
            if refusal is None:
                partitions.append((yield from _describe(context, topic.name, partition)))
            else:
                code, message = refusal.code, refusal.message
                partitions.append(PartitionResponse(partition_index=partition, error_code=code, error_message=message))
            yield
        yield
    return response


def _describe(context: Context, topic: str, partition: int) -> Steps[PartitionResponse]:
    try:
        log = context.broker.logs.get(topic, partition)
    except KafkaError as error:
        return PartitionResponse(partition_index=partition, error_code=error.code)
    response = PartitionResponse(partition_index=partition)
    for number, status in enumerate(log.producer_statuses(), 1):
        response.active_producers.append(
            ProducerState(
                producer_id=status.producer_id,
                producer_epoch=status.producer_epoch,
                last_sequence=status.last_sequence,
                last_timestamp=status.last_timestamp_ms,
                coordinator_epoch=status.coordinator_epoch,
                current_txn_start_offset=status.current_txn_start_offset,
            )
        )
        if number % PRODUCERS_PER_STEP == 0:
            yield
    return response


def _refusal(context: Context, topic: str) -> KafkaError | None:
    """Returns why no partition of the topic is described."""
    try:
        check_name(topic)
    except KafkaError as error:
        return error.without_frames()
    if not is_authorized(context, AclOperation.READ, ResourceType.TOPIC, topic):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if topic not in context.broker.metadata.image.topics:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_MESSAGE)
    return None

"""DescribeTopicPartitions (key 75), version 0.

Returns topics in the order of their names, in pages: at most `response_partition_limit` partitions (and at most
`max.request.partition.size.limit`), then a cursor for the next page (KIP-966). If no topics are named, returns all. An
empty name without a cursor fails the request with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from kafka_shim.api.partitions import led_by
from kafka_shim.authorization import authorized_in_steps, authorized_operations
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.metadata.topics import check_name
from kafka_shim.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kafka_shim.protocol.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Partition, Topic
    from kafka_shim.protocol.messages.describe_topic_partitions_request import Cursor as RequestCursor
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 75, 0, 0
REQUEST, RESPONSE = DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
ABANDONABLE = True


def handle(context: Context, request: DescribeTopicPartitionsRequest) -> Steps[DescribeTopicPartitionsResponse]:
    image = context.broker.metadata.image
    cursor = request.cursor
    first_name = cursor.topic_name if cursor is not None else ""
    wanted = {topic.name for topic in request.topics} or set(image.topics)
    yield
    names = sorted(name for name in wanted if name >= first_name)
    yield
    if cursor is not None:
        _check_cursor(cursor, is_among_named=not request.topics or first_name in wanted)
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    if cursor is None and "" in described:
        # Kafka takes it for the topic of the cursor that is not there, and fails.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a topic's name must not be empty")
    denied = [name for name in names if name not in described] if request.topics else []
    left = max(min(context.broker.config.max_request_partition_size_limit, request.response_partition_limit), 1)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        yield
        if name not in described:
            continue
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            if request.topics:
                response.topics.append(_missing(context, name))
            continue
        start = cursor.partition_index if cursor is not None and name == first_name else 0
        shown = topic.partitions[start : start + left]
        response.topics.append(
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=(yield from _describe_all(context, topic, shown)),
                topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, name),
            )
        )
        left -= len(shown)
        if start + len(shown) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=start + len(shown))
            break
    for name in denied:
        refusal = DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
        response.topics.append(refusal)
        yield
    return response


def _check_cursor(cursor: RequestCursor, *, is_among_named: bool) -> None:
    """Raises INVALID_REQUEST."""
    if not is_among_named:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
        )
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "DescribeTopicPartitionsRequest cursor partition must be valid")


def failed(
    request: DescribeTopicPartitionsRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[DescribeTopicPartitionsResponse]:
    """Returns the error for every requested topic."""
    response = DescribeTopicPartitionsResponse()
    for topic in request.topics:
        response.topics.append(DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name))
        yield
    return response


def _missing(context: Context, name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_name(name)
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, name),
    )


def _describe_all(
    context: Context, topic: Topic, partitions: Sequence[Partition]
) -> Steps[list[DescribeTopicPartitionsResponsePartition]]:
    answers = []
    for partition in partitions:
        answers.append(_describe(partition, led_by(context.broker, topic, partition)))
        yield
    return answers


def _describe(partition: Partition, leader: int) -> DescribeTopicPartitionsResponsePartition:
    # As in Kafka, and unlike Metadata, a partition without a leader is no error here.
    answer = DescribeTopicPartitionsResponsePartition(
        partition_index=partition.partition,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
    )
    if leader < 0:
        answer.isr_nodes, answer.last_known_elr = [], list(partition.isr or partition.last_known_elr)
        answer.offline_replicas = list(partition.replicas)
    return answer

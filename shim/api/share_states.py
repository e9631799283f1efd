"""What the requests to the share coordinator (keys 83-87) have in common.

Each share partition is handled on its own and has its own error. One that is named twice is handled twice and answered
once, with what the second time gave, as in Kafka. A request without topics, with a topic without
partitions, or without a group id gets an empty response, as in Kafka.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _R = TypeVar("_R", bound=Any)

    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.turns import Steps


def answer(
    response: _R,
    request: Any,
    topic_result: Callable[..., Any],
    partition_result: Callable[..., Any],
    handle: Callable[[SharePartitionKey, Any], Any],
) -> Steps[_R]:
    """Fill `response` with what `handle(key, partition of the request)` returns for each share partition: the result,
    or None for a result without an error. Returns the response."""
    if not request.group_id or not all(topic.partitions for topic in request.topics):
        return response
    found: dict[bytes, dict[int, Any]] = {}
    for topic in request.topics:
        topic_id = bytes(topic.topic_id)
        partitions = found.setdefault(topic_id, {})
        for wanted in topic.partitions:
            key = request.group_id, topic_id, wanted.partition
            try:
                one = handle(key, wanted) or partition_result()
            except KafkaError as error:
                one = partition_result(error_code=error.code, error_message=error.message)
            one.partition = wanted.partition
            partitions[wanted.partition] = one
            yield
    for topic_id, partitions in found.items():
        response.results.append(topic_result(topic_id=topic_id, partitions=list(partitions.values())))
        yield
    return response


def failed(
    response: _R,
    request: Any,
    topic_result: Callable[..., Any],
    partition_result: Callable[..., Any],
    code: ErrorCode,
    message: str | None,
) -> Steps[_R]:
    """Returns the response with this error for each share partition."""
    for topic in request.topics:
        result = topic_result(topic_id=topic.topic_id)
        for wanted in topic.partitions:
            result.partitions.append(
                partition_result(partition=wanted.partition, error_code=code, error_message=message)
            )
            yield
        response.results.append(result)
    return response

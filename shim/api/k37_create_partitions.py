"""CreatePartitions (key 37), versions 0-3.

Adds partitions to topics. Each topic succeeds or fails by itself. `validate_only` changes nothing. A duplicate name is
INVALID_REQUEST. A timeout of 0 or less is REQUEST_TIMED_OUT if there is something to do, and nothing is changed. From
v3 a topic over the partition mutation quota (KIP-599) is THROTTLING_QUOTA_EXCEEDED. Of all topics together 10,000
partitions are added at most; a topic that needs more is UNKNOWN_SERVER_ERROR, and gets none (in Kafka it gets some).
All that succeed are one batch of the metadata log.
"""

from __future__ import annotations

from collections import Counter

from kafka_shim.authorization import authorized_in_steps
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.large_changes import decide, let_go
from kafka_shim.metadata.topics import MAX_PARTITIONS_PER_REQUEST
from kafka_shim.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_shim.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Topic
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 37, 0, 3
REQUEST, RESPONSE = CreatePartitionsRequest, CreatePartitionsResponse


async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    response = await context.broker.turns.run(_grow(context, request), context.throttle)
    metadata = context.broker.metadata
    await metadata.await_log_changes()
    await metadata.flushed()
    return response


def _grow(context: Context, request: CreatePartitionsRequest) -> Steps[CreatePartitionsResponse]:
    names = Counter(topic.name for topic in request.topics)
    twice = [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name, times in names.items()
        if times > 1
    ]
    once = [topic for topic in request.topics if names[topic.name] == 1]
    asked = {topic.name: None for topic in once}
    allowed = yield from authorized_in_steps(context, AclOperation.ALTER, ResourceType.TOPIC, asked)
    if request.timeout_ms <= 0 and allowed:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, None)
    results: list[CreatePartitionsTopicResult] = []
    # Topics with the number of their first new partition.
    grown: list[tuple[Topic, int]] = []
    metadata = context.broker.metadata
    records, prepared = yield from decide(metadata, _decision(context, request, once, allowed, results, grown))
    if records:
        yield from metadata.commit_partitions_in_steps(grown, records, prepared, context.session)
        yield from let_go(records)
    return CreatePartitionsResponse(results=twice + results)


def _decision(
    context: Context,
    request: CreatePartitionsRequest,
    wanted: list[CreatePartitionsTopic],
    allowed: Collection[str],
    results: list[CreatePartitionsTopicResult],
    grown: list[tuple[Topic, int]],
) -> Callable[[], Steps[list[Any]]]:
    """Returns what decides the request, and fills `results` and `grown` from scratch each time."""
    metadata = context.broker.metadata
    quota = None if context.throttle is None else context.throttle.mutation_quota(is_strict=context.api_version >= 3)
    counted: set[str] = set()

    def decided() -> Steps[list[Any]]:
        records: list[Any] = []
        results.clear()
        grown.clear()
        left = MAX_PARTITIONS_PER_REQUEST
        for asked in wanted:
            yield
            name = asked.name
            results.append(result := CreatePartitionsTopicResult(name=name))
            if name not in allowed:
                result.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            assignments = None if asked.assignments is None else [one.broker_ids for one in asked.assignments]
            try:
                replicas = metadata.decide_growth(name, asked.count, assignments, left)
                if quota is not None and name not in counted:
                    quota.record(len(replicas))
                    counted.add(name)
            except KafkaError as err:
                result.error_code, result.error_message = err.code, err.message
                continue
            left -= len(replicas)
            if not request.validate_only:
                topic = metadata.image.topics[name]
                grown.append((topic, len(topic.partitions)))
                records += yield from metadata.growth_records(topic, replicas)
        return records

    return decided

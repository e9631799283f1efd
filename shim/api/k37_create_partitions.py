"""CreatePartitions (key 37), versions 0-3.

Adds partitions to topics. Each topic succeeds or fails by itself. `validate_only` changes nothing. A duplicate name is
INVALID_REQUEST. A timeout of 0 or less is REQUEST_TIMED_OUT if there is something to do, and nothing is changed. From
v3 a topic over the partition mutation quota (KIP-599) is THROTTLING_QUOTA_EXCEEDED. Of all topics together 10,000
partitions are added at most; a topic that needs more is UNKNOWN_SERVER_ERROR, and gets none (in Kafka it gets some).
"""

from __future__ import annotations

import asyncio
from collections import Counter

from kafka_shim.authorization import authorized_in_steps
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.topics import MAX_PARTITIONS_PER_REQUEST
from kafka_shim.protocol.messages.create_partitions_request import CreatePartitionsRequest
from kafka_shim.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 37, 0, 3
REQUEST, RESPONSE = CreatePartitionsRequest, CreatePartitionsResponse

TOPICS_PER_TURN = 128


async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    response = CreatePartitionsResponse()
    metadata = context.broker.metadata
    names = Counter(topic.name for topic in request.topics)
    response.results = [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name, times in names.items()
        if times > 1
    ]
    once = {name: None for name, times in names.items() if times == 1}
    asked = authorized_in_steps(context, AclOperation.ALTER, ResourceType.TOPIC, once)
    allowed = await context.broker.turns.run(asked, context.throttle)
    if request.timeout_ms <= 0 and allowed:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, None)
    left = MAX_PARTITIONS_PER_REQUEST
    quota = None if context.throttle is None else context.throttle.mutation_quota(is_strict=context.api_version >= 3)
    for number, topic in enumerate(request.topics, 1):
        if not number % TOPICS_PER_TURN:
            await asyncio.sleep(0)
        if names[topic.name] > 1:
            continue
        result = CreatePartitionsTopicResult(name=topic.name)
        response.results.append(result)
        if topic.name not in allowed:
            result.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            continue
        assignments = None if topic.assignments is None else [one.broker_ids for one in topic.assignments]
        try:
            left -= metadata.create_partitions(
                topic.name,
                topic.count,
                assignments=assignments,
                validate_only=request.validate_only,
                later=True,
                quota=None if quota is None else quota.record,
                most=left,
            )
        except KafkaError as err:
            result.error_code = err.code
            result.error_message = err.message
    await metadata.await_log_changes()
    await metadata.flushed()
    return response

"""OffsetDelete (key 47), version 0.

Removes committed offsets of a group (KIP-496). Topics that its members subscribe to are GROUP_SUBSCRIBED_TO_TOPIC. A
group with members of an unknown protocol type is refused as a whole with NON_EMPTY_GROUP. Unknown partitions have their
own error code. As from Kafka, a topic of which something is refused is answered once, and one that does not exist also
without partitions.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps, require
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kafka_shim.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.outcome import Outcome
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 47, 0, 0
REQUEST, RESPONSE = OffsetDeleteRequest, OffsetDeleteResponse


def handle(
    context: Context, request: OffsetDeleteRequest
) -> Outcome[OffsetDeleteResponse] | Steps[Outcome[OffsetDeleteResponse]]:
    require(context, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    steps = _in_steps(context, request)
    return steps if context.is_large else at_once(steps)


def _in_steps(context: Context, request: OffsetDeleteRequest) -> Steps[Outcome[OffsetDeleteResponse]]:
    """What exists of the request is deleted in one step."""
    offsets = context.broker.groups.offsets
    names = (topic.name for topic in request.topics)
    allowed = yield from authorized_in_steps(context, AclOperation.READ, ResourceType.TOPIC, names)
    image = context.broker.metadata.image
    refused: dict[str, OffsetDeleteResponseTopic] = {}
    known = []
    for topic in request.topics:
        exist = []
        if topic.name not in allowed or topic.name not in image.topics:
            refused.setdefault(topic.name, OffsetDeleteResponseTopic(name=topic.name))
        for partition in topic.partitions:
            yield
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic.name not in allowed:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(topic.name, partition.partition_index) is not None:
                exist.append(partition)
                continue
            answer = refused.setdefault(topic.name, OffsetDeleteResponseTopic(name=topic.name))
            answer.partitions.append(
                OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
        if exist:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=exist))
    request.topics = known
    outcome = (yield from offsets.delete_in_steps(request)) if context.is_large else offsets.delete(request)
    response = outcome.response
    if refused:
        for answered in response.topics:
            topic_answer = refused.setdefault(answered.name, OffsetDeleteResponseTopic(name=answered.name))
            topic_answer.partitions += answered.partitions
            yield
        response.topics = list(refused.values())
    return outcome

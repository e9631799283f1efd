"""AlterShareGroupOffsets (key 91), version 0.

Starts share partitions of a group without members anew, each at its offset. The group is created if it does not exist.
NON_EMPTY_GROUP if it has members, GROUP_ID_NOT_FOUND if it is of another kind, UNKNOWN_TOPIC_OR_PARTITION for each
partition that does not exist.
"""

from __future__ import annotations

from kafka_shim.api.k76_share_group_heartbeat import check_protocol
from kafka_shim.authorization import authorized, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from kafka_shim.protocol.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flushes

KEY, MIN, MAX = 91, 0, 0
REQUEST, RESPONSE = AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse

UNAUTHORIZED = "Topic authorization failed."
UNKNOWN = "This server does not host this topic-partition."


async def handle(context: Context, request: AlterShareGroupOffsetsRequest) -> Outcome[AlterShareGroupOffsetsResponse]:
    check_protocol(context.broker)
    require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
    topics = context.broker.metadata.image.topics
    allowed = authorized(context, AclOperation.READ, ResourceType.TOPIC, [topic.topic_name for topic in request.topics])
    # (topic, partition) -> its error; and what is left to do.
    refused: dict[tuple[str, int], KafkaError] = {}
    offsets: dict[bytes, dict[int, int]] = {}
    names: dict[bytes, str] = {}
    for entry in request.topics:
        topic = topics.get(entry.topic_name)
        for part in entry.partitions:
            if entry.topic_name not in allowed:
                error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNAUTHORIZED)
            elif topic is None or not 0 <= part.partition_index < len(topic.partitions):
                error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
            else:
                offsets.setdefault(topic.topic_id, {})[part.partition_index] = part.start_offset
                names[topic.topic_id] = entry.topic_name
                continue
            refused[entry.topic_name, part.partition_index] = error
    errors, flushes = await context.broker.groups.share.alter_offsets(request.group_id, offsets)
    for (topic_id, partition), error in errors.items():
        refused[names[topic_id], partition] = error  # of a topic that may have been deleted meanwhile
    return _answer(context, request, refused, flushes)


def _answer(
    context: Context,
    request: AlterShareGroupOffsetsRequest,
    refused: dict[tuple[str, int], KafkaError],
    flushes: Flushes,
) -> Outcome[AlterShareGroupOffsetsResponse]:
    topics = context.broker.metadata.image.topics
    response = AlterShareGroupOffsetsResponse()
    # As Kafka, topics that are not there come first.
    for entry in sorted(request.topics, key=lambda entry: entry.topic_name in topics):
        topic = topics.get(entry.topic_name)
        answer = AlterShareGroupOffsetsResponseTopic(
            topic_name=entry.topic_name, topic_id=ZERO_UUID if topic is None else topic.topic_id
        )
        for part in entry.partitions:
            one = AlterShareGroupOffsetsResponsePartition(partition_index=part.partition_index)
            error = refused.get((entry.topic_name, part.partition_index))
            if error is not None:
                one.error_code = error.code
                one.error_message = error.message
            answer.partitions.append(one)
        response.responses.append(answer)
    return Outcome(response, flushes)

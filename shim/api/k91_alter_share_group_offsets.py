"""AlterShareGroupOffsets (key 91), version 0.

Has partitions of a group without members start over, each at its offset. The group is created if it does not exist,
and one of the topics does, whatever is asked of it. NON_EMPTY_GROUP if it has members, GROUP_ID_NOT_FOUND if it is of
another kind, UNKNOWN_TOPIC_OR_PARTITION for each partition that does not exist. A topic that is named twice is answered
once.
"""

from __future__ import annotations

from kafka_shim.api.k76_share_group_heartbeat import check_protocol
from kafka_shim.authorization import authorized_in_steps, require
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
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 91, 0, 0
REQUEST, RESPONSE = AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse

UNAUTHORIZED = "Topic authorization failed."
UNKNOWN = "This server does not host this topic-partition."
PARTITIONS_PER_STEP = 32


async def handle(context: Context, request: AlterShareGroupOffsetsRequest) -> Outcome[AlterShareGroupOffsetsResponse]:
    check_protocol(context.broker)
    require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
    turns = context.broker.turns
    asked = await turns.run(_sort(context, request), context.throttle)
    known = context.broker.metadata.image.topics_by_id
    for topic_id in [topic_id for topic_id in asked.offsets if topic_id not in known]:  # deleted between two steps
        asked.refuse_topic(topic_id)
    errors, flushes = await context.broker.groups.share.alter_offsets(request.group_id, asked.offsets)
    for (topic_id, partition), error in errors.items():
        asked.refused[asked.names[topic_id], partition] = error  # of a topic that may have been deleted meanwhile
    response = await turns.run(_answer(context, request, asked), context.throttle)
    return Outcome(response, flushes)


class _Asked:
    """What one request asks for."""

    __slots__ = ("names", "offsets", "refused")

    def __init__(self) -> None:
        # (topic, partition) -> its error; and what is left to do.
        self.refused: dict[tuple[str, int], KafkaError] = {}
        self.offsets: dict[bytes, dict[int, int]] = {}
        self.names: dict[bytes, str] = {}

    def refuse_topic(self, topic_id: bytes) -> None:
        """The topic does not exist any more."""
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
        name = self.names[topic_id]
        self.refused.update(((name, partition), error) for partition in self.offsets.pop(topic_id))


def _sort(context: Context, request: AlterShareGroupOffsetsRequest) -> Steps[_Asked]:
    asked = _Asked()
    names = (topic.topic_name for topic in request.topics)
    allowed = yield from authorized_in_steps(context, AclOperation.READ, ResourceType.TOPIC, names)
    unauthorized = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNAUTHORIZED)
    unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
    for entry in request.topics:
        name = entry.topic_name
        topic = context.broker.metadata.image.topics.get(name)
        if topic is not None and name in allowed:
            asked.names[topic.topic_id] = name
            asked.offsets.setdefault(topic.topic_id, {})
        for number, part in enumerate(entry.partitions, 1):
            partition = part.partition_index
            if name not in allowed:
                asked.refused[name, partition] = unauthorized
            elif topic is None or partition >= len(topic.partitions):
                asked.refused[name, partition] = unknown
            else:
                asked.offsets[topic.topic_id][partition] = part.start_offset
            if number % PARTITIONS_PER_STEP == 0:
                yield
        yield
    return asked


def _answer(
    context: Context, request: AlterShareGroupOffsetsRequest, asked: _Asked
) -> Steps[AlterShareGroupOffsetsResponse]:
    answers: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
    known = set(asked.names.values())
    # As Kafka, topics that are refused come first, with their partitions alone.
    for entry in sorted(request.topics, key=lambda entry: entry.topic_name in known):
        name = entry.topic_name
        if not entry.partitions and name not in known:
            continue
        if name not in answers:
            topic = context.broker.metadata.image.topics.get(name)
            topic_id = ZERO_UUID if topic is None else topic.topic_id
            answers[name] = AlterShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
        partitions = answers[name].partitions
        for number, part in enumerate(entry.partitions, 1):
            one = AlterShareGroupOffsetsResponsePartition(partition_index=part.partition_index)
            error = asked.refused.get((name, part.partition_index))
            if error is not None:
                one.error_code = error.code
                one.error_message = error.message
            partitions.append(one)
            if number % PARTITIONS_PER_STEP == 0:
                yield
        yield
    return AlterShareGroupOffsetsResponse(responses=list(answers.values()))

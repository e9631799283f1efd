"""DescribeShareGroupOffsets (key 90), versions 0-1.

Returns the start offsets of share partitions: of these, or (null) of all that are initialised. What has no state has a
start offset of -1 and no error. v1 lag: offsets from the start offset to the end whose delivery is not complete; -1 if
it is not known (KIP-1226).
"""

from __future__ import annotations

from functools import partial

from kafka_shim.api.k76_share_group_heartbeat import check_protocol
from kafka_shim.authorization import authorized_in_steps, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest
from kafka_shim.protocol.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Topic
    from kafka_shim.protocol.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequestGroup
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 90, 0, 1
REQUEST, RESPONSE = DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
ABANDONABLE = True

UNKNOWN = -1
UNEXPECTED = "The server experienced an unexpected error when processing the request."


def handle(context: Context, request: DescribeShareGroupOffsetsRequest) -> Steps[DescribeShareGroupOffsetsResponse]:
    response = DescribeShareGroupOffsetsResponse()
    for wanted in request.groups:
        yield
        group = DescribeShareGroupOffsetsResponseGroup(group_id=wanted.group_id)
        response.groups.append(group)
        try:
            check_protocol(context.broker)
            require(context, AclOperation.DESCRIBE, ResourceType.GROUP, wanted.group_id)
            if wanted.topics is None:
                group.topics = yield from _all(context, wanted.group_id)
            else:
                group.topics = yield from _these(context, wanted)
        except KafkaError as error:
            group.error_code = error.code
            group.error_message = error.message
    return response


def _all(context: Context, group_id: str) -> Steps[list[DescribeShareGroupOffsetsResponseTopic]]:
    broker = context.broker
    topics = broker.metadata.image.topics_by_id
    initialized = {
        topics[topic_id]: partitions
        for topic_id, partitions in broker.groups.share.initialized_partitions(group_id).items()
        if topic_id in topics
    }
    names = (topic.name for topic in initialized)
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    found = []
    for topic, partitions in initialized.items():
        if topic.name in described:
            found.append((yield from _topic(broker, group_id, topic, partitions)))
    return found


def _these(
    context: Context, wanted: DescribeShareGroupOffsetsRequestGroup
) -> Steps[list[DescribeShareGroupOffsetsResponseTopic]]:
    broker = context.broker
    names = (topic.topic_name for topic in wanted.topics or ())
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    unknown, hidden = [], []
    asked: dict[Topic, dict[int, None]] = {}  # as in Kafka, what is named twice is described once
    for entry in wanted.topics or ():
        yield
        topic = broker.metadata.image.topics.get(entry.topic_name)
        if entry.topic_name not in described:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            hidden.append((yield from _without_state(entry.topic_name, entry.partitions, code)))
        elif topic is None:
            unknown.append((yield from _without_state(entry.topic_name, entry.partitions, ErrorCode.NONE)))
        elif not wanted.group_id or not entry.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, UNEXPECTED)  # Kafka fails to ask for their states
        else:
            partitions = asked.setdefault(topic, {})
            for partition in entry.partitions:
                yield
                if partition < 0:
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, UNEXPECTED)  # nor for those of one below 0
                partitions[partition] = None
    known = []
    for topic, partitions in asked.items():
        known.append((yield from _topic(broker, wanted.group_id, topic, partitions)))
    return [*known, *unknown, *hidden]


def _without_state(
    name: str, partitions: Sequence[int], code: ErrorCode
) -> Steps[DescribeShareGroupOffsetsResponseTopic]:
    message = "Topic authorization failed." if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else None
    answer = DescribeShareGroupOffsetsResponseTopic(topic_name=name)
    for partition in partitions:
        yield
        answer.partitions.append(
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=partition, start_offset=UNKNOWN, error_code=code, error_message=message
            )
        )
    return answer


def _topic(
    broker: Broker, group_id: str, topic: Topic, partitions: Iterable[int]
) -> Steps[DescribeShareGroupOffsetsResponseTopic]:
    answer = DescribeShareGroupOffsetsResponseTopic(topic_name=topic.name, topic_id=topic.topic_id)
    for partition in partitions:
        yield
        answer.partitions.append((yield from _partition(broker, group_id, topic, partition)))
    return answer


def _partition(
    broker: Broker, group_id: str, topic: Topic, partition: int
) -> Steps[DescribeShareGroupOffsetsResponsePartition]:
    answer = DescribeShareGroupOffsetsResponsePartition(partition_index=partition, start_offset=UNKNOWN)
    key = group_id, topic.topic_id, partition
    states = broker.share_state
    try:
        summary = yield from states.once_loaded(key, partial(states.read_summary, *key))
    except KafkaError:
        return answer  # Kafka shows an error of the share coordinator as the absence of a state
    _, leader_epoch, start_offset, complete_count = summary
    answer.start_offset = start_offset
    answer.leader_epoch = leader_epoch
    if UNKNOWN in (start_offset, complete_count):
        return answer
    try:
        end_offset = broker.logs.get(topic.name, partition).high_watermark
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=partition, error_code=error.code, error_message=error.message
        )
    answer.lag = end_offset - start_offset - complete_count
    return answer

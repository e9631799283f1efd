"""OffsetFetch (key 9), versions 1-10.

Returns the committed offsets of a group: for the named partitions, or for all (null topics, v2). A partition without
one has offset -1. v5 the leader epoch. v6 is flexible. v7 requireStable (KIP-447): UNSTABLE_OFFSET_COMMIT if a
transaction is open (B16, D14). v8 several groups (KIP-709). v9 names the member, which is checked in consumer groups:
STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID. v10 names topics by id: UNKNOWN_TOPIC_ID; a response for all topics omits topics
without an id. Before anybody asked for a coordinator, which creates `__consumer_offsets`, every group is
NOT_COORDINATOR.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps, is_authorized
from kafka_shim.cext.plain_offset_fetch import PlainOffsetFetch
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.classic_state import DEAD
from kafka_shim.group.consumer import ConsumerGroup
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_shim.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Image
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 9, 1, 10
REQUEST, RESPONSE = OffsetFetchRequest, OffsetFetchResponse
ABANDONABLE = True

FIRST_WITH_TOP_ERROR = 2
FIRST_WITH_GROUPS = 8
FIRST_WITH_IDS = 10


def handle(context: Context, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    version = context.api_version
    if version >= FIRST_WITH_GROUPS:
        response = OffsetFetchResponse()
        for asked in request.groups:
            response.groups.append((yield from _fetch(context, asked, request.require_stable)))
            yield
        return response
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    wanted = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    group = yield from _fetch(context, wanted, request.require_stable)
    if group.error_code and version < FIRST_WITH_TOP_ERROR:
        group.topics = _errors(topics or [], ErrorCode(group.error_code))
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(name=topic.name, partitions=[_plain(each) for each in topic.partitions])
            for topic in group.topics
        ],
    )


def _plain(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


def _fetch(context: Context, group: OffsetFetchRequestGroup, require_stable: bool) -> Steps[OffsetFetchResponseGroup]:
    broker = context.broker
    image = broker.metadata.image
    by_id = context.api_version >= FIRST_WITH_IDS
    if not is_authorized(context, AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    unknown: list[OffsetFetchRequestTopics] = []
    denied: list[OffsetFetchRequestTopics] = []
    if group.topics is not None and by_id:
        unknown = yield from _name_topics(image, group)
    if group.topics is not None and broker.authorizer is not None:
        names = (topic.name for topic in group.topics)
        allowed = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
        denied = [topic for topic in group.topics if topic.name not in allowed]
        if denied:
            group.topics = [topic for topic in group.topics if topic.name in allowed]
    try:
        if context.is_large or group.topics is None:  # all offsets of a group: a small request may ask for many
            answer = yield from broker.groups.offsets.fetch_in_steps(group, require_stable)
        else:
            answer = broker.groups.offsets.fetch(group, require_stable)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
    if group.topics is None and broker.authorizer is not None:
        names = (topic.name for topic in answer.topics)
        allowed = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
        answer.topics = [topic for topic in answer.topics if topic.name in allowed]
    if by_id and group.topics is None:
        answer.topics = [topic for topic in answer.topics if topic.name in image.topics]
        for topic in answer.topics:
            topic.topic_id = image.topics[topic.name].topic_id
    if unknown:
        answer.topics += _errors(unknown, ErrorCode.UNKNOWN_TOPIC_ID)
    if denied:
        answer.topics += _errors(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return answer


def _name_topics(image: Image, group: OffsetFetchRequestGroup) -> Steps[list[OffsetFetchRequestTopics]]:
    """Resolve topic ids to names. Removes unknown topics and returns their response entries."""
    unknown = []
    known = []
    for topic in group.topics or ():
        found = image.topics_by_id.get(bytes(topic.topic_id))
        if found is None or topic.topic_id == ZERO_UUID:
            unknown.append(topic)
        else:
            topic.name = found.name
            known.append(topic)
        yield
    group.topics = known
    return unknown


def _errors(topics: list[OffsetFetchRequestTopics], code: ErrorCode) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(partition_index=partition, committed_offset=-1, error_code=code)
                for partition in topic.partition_indexes
            ],
        )
        for topic in topics
    ]


def failed(
    request: OffsetFetchRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[OffsetFetchResponse]:
    """Returns the error in each group (v8), at the top level, or in each partition (v1)."""
    response = OffsetFetchResponse()
    if version >= FIRST_WITH_GROUPS:
        for group in request.groups:
            response.groups.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=code))
            yield
        return response
    if version >= FIRST_WITH_TOP_ERROR:
        response.error_code = code
        return response
    for topic in request.topics or ():
        answer = OffsetFetchResponseTopic(name=topic.name)
        response.topics.append(answer)
        for each in topic.partition_indexes:
            answer.partitions.append(
                OffsetFetchResponsePartition(partition_index=each, committed_offset=-1, error_code=code)
            )
            yield
    return response


PLAIN = PlainOffsetFetch(DEAD, ConsumerGroup)

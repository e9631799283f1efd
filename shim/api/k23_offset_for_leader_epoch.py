"""OffsetForLeaderEpoch (key 23), versions 2-4.

Returns where a leader epoch ended: the newest epoch at or below the requested one, and the first offset of the next
epoch, or the log end offset for the current epoch (KIP-320). A client with an older or newer current leader epoch than
this partition's gets an error. v3 replica id (ignored: there are no followers). v4 is flexible.
"""

from __future__ import annotations

from kafka_shim.api.partitions import check_leader_epoch
from kafka_shim.authorization import authorized_in_steps, may_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from kafka_shim.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 23, 2, 4
REQUEST, RESPONSE = OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
ABANDONABLE = True


def handle(context: Context, request: OffsetForLeaderEpochRequest) -> Steps[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    names: dict[str, None] = {}
    for topic in request.topics:
        names[topic.topic] = None
        yield
    allowed: Collection[str] = names
    if not may_on_cluster(context, AclOperation.CLUSTER_ACTION, logs_denied=False):
        allowed = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    denied = []
    for topic in request.topics:
        if topic.topic not in allowed:
            denied.append(topic)
            continue
        yield
        answers = []
        for asked in topic.partitions:
            answer = EpochEndOffset(partition=asked.partition)
            answers.append(answer)
            yield
            try:
                log = context.broker.logs.get(topic.topic, asked.partition)
                check_leader_epoch(log, asked.current_leader_epoch)
                answer.leader_epoch, answer.end_offset = log.end_offset_for_epoch(asked.leader_epoch)
            except KafkaError as error:
                answer.error_code = error.code
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for topic in denied:
        refused = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(refused)
        for asked in topic.partitions:
            refused.partitions.append(EpochEndOffset(partition=asked.partition, error_code=code))
            yield
    return response

"""ListOffsets (key 2), versions 1-11.

Returns the offset for a timestamp: -1 the end (high watermark, or last stable offset under read_committed), -2 the log
start offset, -3 the record with the highest timestamp (v7), -4 the earliest local record (v8), -5 the latest tiered one
(v9), -6 the earliest that waits for upload (v11); >= 0 the first record at or after it. There is no tiered storage: -5
and -6 return -1, as Kafka without remote storage does. A special timestamp that is too new for the version is
UNSUPPORTED_VERSION. No offset at or above the bound of the isolation level is returned (B14). v2 isolation level. v4
leader epochs. v6 is flexible. v10 a timeout for tiered look-ups, which is not used here.
"""

from __future__ import annotations

from kafka_shim.api.partitions import check_leader_epoch
from kafka_shim.authorization import is_authorized
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from kafka_shim.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.list_offsets_request import ListOffsetsTopic
    from kafka_shim.storage.results import FoundOffset
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 2, 1, 11
REQUEST, RESPONSE = ListOffsetsRequest, ListOffsetsResponse
ABANDONABLE = True

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
_FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


def handle(context: Context, request: ListOffsetsRequest) -> Steps[ListOffsetsResponse]:
    if request.topics and request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown isolation level {request.isolation_level}, it is 0 or 1"
        )
    response = ListOffsetsResponse()
    allowed: dict[str, bool] = {}
    denied: list[ListOffsetsTopic] = []
    seen: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        name = topic.name
        if name not in allowed:
            allowed[name] = is_authorized(context, AclOperation.DESCRIBE, ResourceType.TOPIC, name)
            yield
        if not allowed[name]:
            denied.append(topic)
            continue
        for asked in topic.partitions:
            key = (name, asked.partition_index)
            seen[key] = seen.get(key, 0) + 1
            yield
    for topic in request.topics:
        if not allowed[topic.name]:
            continue
        answers: list[ListOffsetsPartitionResponse] = []
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        for asked in topic.partitions:
            yield
            count = seen.pop((topic.name, asked.partition_index), 0)
            if not count:
                continue  # a repeated partition gets one entry, with an error
            answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            answers.append(answer)
            if count > 1:
                answer.error_code = ErrorCode.INVALID_REQUEST
                continue
            try:
                found = _find(context, topic.name, asked, request.isolation_level if request.replica_id == -1 else 0)
            except KafkaError as error:
                answer.error_code = error.code
                continue
            if found is not None:
                answer.timestamp = found.timestamp_ms
                answer.offset = found.offset
                if context.api_version >= 4:
                    answer.leader_epoch = found.leader_epoch
    for topic in denied:
        response.topics.append(_refusal(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        yield
    return response


def failed(request: ListOffsetsRequest, version: int, code: ErrorCode, message: str | None) -> ListOffsetsResponse:
    """Returns the error in every partition, with no offset."""
    return ListOffsetsResponse(topics=[_refusal(topic, code) for topic in request.topics])


def _refusal(topic: ListOffsetsTopic, code: ErrorCode) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
            for asked in topic.partitions
        ],
    )


def _find(context: Context, topic: str, asked: ListOffsetsPartition, isolation_level: int) -> FoundOffset | None:
    timestamp = asked.timestamp
    if timestamp < 0 and context.api_version < _FIRST_VERSION.get(timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    log = context.broker.logs.get(topic, asked.partition_index)
    check_leader_epoch(log, asked.current_leader_epoch)
    if timestamp == LATEST:
        return log.latest(isolation_level)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.earliest()
    if timestamp == MAX_TIMESTAMP:
        return log.max_timestamp(isolation_level)
    if timestamp < 0:
        return None
    return log.offset_for_timestamp(timestamp, isolation_level)

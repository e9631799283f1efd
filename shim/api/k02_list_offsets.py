"""ListOffsets (key 2), versions 1-11.

Returns the offset for a timestamp: -1 the end (high watermark, or last stable offset under read_committed), -2 the log
start offset, -3 the record with the highest timestamp (v7), -4 the earliest local record (v8), -5 the latest tiered one
(v9), -6 the earliest that waits for upload (v11); >= 0 the first record at or after it. There is no tiered storage: -5
and -6 return -1, as Kafka without remote storage does. A special timestamp that is too new for the version is
UNSUPPORTED_VERSION. No offset at or above the bound of the isolation level is returned (B14). As from Kafka, a topic is
answered once, and not at all without partitions, unless the client may not see it. v2 isolation level. v4 leader
epochs. v6 is flexible. v10 a timeout for tiered look-ups, which is not used here.
"""

from __future__ import annotations

from operator import attrgetter

from kafka_shim.api.partitions import check_leader_epoch
from kafka_shim.authorization import authorized_in_steps
from kafka_shim.cext.plain_list_offsets import PlainListOffsets
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
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 2, 1, 11
REQUEST, RESPONSE = ListOffsetsRequest, ListOffsetsResponse
ABANDONABLE = True

NO_LEADER_EPOCH = -1
TOPICS_PER_STEP = 64
_PARTITIONS = attrgetter("partitions")
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
    denied: list[ListOffsetsTopic] = []
    names = [topic.name for topic in request.topics]
    allowed = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    are_distinct = len(allowed) == len(names)
    repeated = yield from _repeated(request.topics, are_distinct=are_distinct)
    isolation_level = request.isolation_level if request.replica_id == -1 else READ_UNCOMMITTED
    for topic in request.topics:
        name = topic.name
        if name not in allowed:
            denied.append(topic)
            continue
        answers: list[ListOffsetsPartitionResponse] = []
        response.topics.append(ListOffsetsTopicResponse(name=name, partitions=answers))
        for asked in topic.partitions:
            yield
            index = asked.partition_index
            answer = ListOffsetsPartitionResponse(partition_index=index)
            if repeated and (is_first := repeated.get((name, index))) is not None:
                if is_first:
                    repeated[name, index] = False
                    answer.error_code = ErrorCode.INVALID_REQUEST
                    answers.append(answer)
                continue  # a repeated partition gets one entry, with an error
            answers.append(answer)
            try:
                if asked.timestamp != LATEST and _is_look_up(context, asked.timestamp):
                    yield from context.broker.logs.get(name, index).read_times(asked.timestamp)
                _find(context, name, asked, isolation_level, answer)
            except KafkaError as error:
                answer.error_code = error.code
    if not (are_distinct and all(map(_PARTITIONS, request.topics))):
        by_name: dict[str, ListOffsetsTopicResponse] = {}
        for told in response.topics:
            if not told.partitions:
                continue
            if by_name.setdefault(told.name, told) is not told:
                by_name[told.name].partitions += told.partitions
            yield
        response.topics = list(by_name.values())
    for topic in denied:
        response.topics.append((yield from _refusal(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    return response


def _repeated(topics: list[ListOffsetsTopic], *, are_distinct: bool) -> Steps[dict[tuple[str, int], bool]]:
    """Returns the partitions that the request names more than once, each with True: it is not answered yet.
    `are_distinct`: whether no topic is there twice."""
    seen: set[tuple[str, int]] = set()
    repeated: dict[tuple[str, int], bool] = {}
    for start in range(0, len(topics), TOPICS_PER_STEP):
        yield
        for topic in topics[start : start + TOPICS_PER_STEP]:
            if are_distinct and len(topic.partitions) < 2:
                continue
            for asked in topic.partitions:
                key = (topic.name, asked.partition_index)
                if key in seen:
                    repeated[key] = True
                seen.add(key)
                yield
    return repeated


def failed(
    request: ListOffsetsRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[ListOffsetsResponse]:
    """Returns the error in every partition, with no offset."""
    response = ListOffsetsResponse()
    for topic in request.topics:
        response.topics.append((yield from _refusal(topic, code)))
    return response


def _refusal(topic: ListOffsetsTopic, code: ErrorCode) -> Steps[ListOffsetsTopicResponse]:
    answer = ListOffsetsTopicResponse(name=topic.name)
    for asked in topic.partitions:
        answer.partitions.append(ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code))
        yield
    return answer


def _is_look_up(context: Context, timestamp: int) -> bool:
    return timestamp >= 0 or (timestamp == MAX_TIMESTAMP and context.api_version >= _FIRST_VERSION[MAX_TIMESTAMP])


def _find(
    context: Context,
    topic: str,
    asked: ListOffsetsPartition,
    isolation_level: int,
    answer: ListOffsetsPartitionResponse,
) -> None:
    """Put what is found into the answer. Raises KafkaError."""
    timestamp, has_leader_epoch = asked.timestamp, context.api_version >= 4
    if timestamp < LATEST and context.api_version < _FIRST_VERSION.get(timestamp, 1 << 15):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    log = context.broker.logs.get(topic, asked.partition_index)
    if asked.current_leader_epoch != NO_LEADER_EPOCH:
        check_leader_epoch(log, asked.current_leader_epoch)
    if timestamp == LATEST:  # what those ask who watch the lag of thousands of partitions: without a FoundOffset
        answer.offset = log.last_stable_offset if isolation_level else log.log_end_offset
        if has_leader_epoch:
            answer.leader_epoch = log.leader_epoch
        return
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        found = log.earliest()
    elif timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp(isolation_level)
    elif timestamp < 0:
        return
    else:
        found = log.offset_for_timestamp(timestamp, isolation_level)
    answer.timestamp = found.timestamp_ms
    answer.offset = found.offset
    if has_leader_epoch:
        answer.leader_epoch = found.leader_epoch


PLAIN = PlainListOffsets()

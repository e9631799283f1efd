"""DeleteRecords (key 21), versions 0-2.

Raises the log start offset of partitions; -1 means the high watermark. With one replica the low watermark is the log
start offset, so nothing waits and the timeout is not used. Internal topics: INVALID_TOPIC_EXCEPTION. A compacted topic
without deletion: POLICY_VIOLATION. An offset beyond the high watermark: OFFSET_OUT_OF_RANGE.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.protocol.messages.delete_records_request import DeleteRecordsRequest
from kafka_shim.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.turns import Steps

    Deletion = tuple[DeleteRecordsPartitionResult, PartitionLog, int]

KEY, MIN, MAX = 21, 0, 2
REQUEST, RESPONSE = DeleteRecordsRequest, DeleteRecordsResponse

NO_LOW_WATERMARK = -1
# How many starts are raised in one step. Each slice writes the starts of all partitions, and nobody may see in between
# what is not written yet.
SLICE = 500


def handle(context: Context, request: DeleteRecordsRequest) -> Steps[DeleteRecordsResponse]:
    # If a partition is listed twice the last entry counts, as in Kafka.
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = wanted.setdefault(topic.name, {})
        for partition in topic.partitions:
            offsets[partition.partition_index] = partition.offset
            yield
        yield
    response = DeleteRecordsResponse()
    allowed = yield from authorized_in_steps(context, AclOperation.DELETE, ResourceType.TOPIC, wanted)
    together: list[Deletion] = []
    for name, offsets in wanted.items():
        if not offsets:
            continue
        result = DeleteRecordsTopicResult(name=name)
        response.topics.append(result)
        for index, offset in offsets.items():
            answer = DeleteRecordsPartitionResult(partition_index=index)
            try:
                together.append((answer, _log_of(context.broker, name, index, name in allowed), offset))
            except KafkaError as err:
                _refuse(answer, err)
            result.partitions.append(answer)
            yield
            if len(together) == SLICE:
                _delete(context.broker, together)
                together = []
                yield
    _delete(context.broker, together)
    return response


def _log_of(broker: Broker, topic: str, partition: int, is_allowed: bool) -> PartitionLog:
    if not is_allowed:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if broker.metadata.image.partition(topic, partition) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}")
    return broker.logs.get(topic, partition)


def _delete(broker: Broker, deletions: list[Deletion]) -> None:
    """Raise the starts of a slice of the partitions, and store them."""
    with broker.logs.checkpoints.raising_together() as failed:
        for answer, log, offset in deletions:
            try:
                answer.low_watermark = log.delete_records_before(offset)
            except KafkaError as err:
                _refuse(answer, err)
    if failed:
        for answer, log, _ in deletions:
            if log in failed:
                _refuse(answer, failed[log])


def _refuse(answer: DeleteRecordsPartitionResult, err: KafkaError) -> None:
    answer.low_watermark = NO_LOW_WATERMARK
    answer.error_code = err.code

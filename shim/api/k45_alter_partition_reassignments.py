"""AlterPartitionReassignments (key 45), versions 0-1.

With one broker there is one place for a replica. A target of this broker is the current state and succeeds. Any other
target is INVALID_REPLICA_ASSIGNMENT, and a cancellation is NO_REASSIGNMENT_IN_PROGRESS. v1 may forbid a change of the
replication factor. A request without topics is answered before its timeout is looked at, with the defaults of the
response.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.topics import check_assignment, shown_name
from kafka_shim.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kafka_shim.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 45, 0, 1
REQUEST, RESPONSE = AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse
ABANDONABLE = True


def handle(context: Context, request: AlterPartitionReassignmentsRequest) -> Steps[AlterPartitionReassignmentsResponse]:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    if request.timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    may_change = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(error_message=None, allow_replication_factor_change=may_change)
    for topic in request.topics:
        result = ReassignableTopicResponse(name=topic.name)
        response.responses.append(result)
        for partition in topic.partitions:
            answer = ReassignablePartitionResponse(partition_index=partition.partition_index, error_message=None)
            result.partitions.append(answer)
            try:
                _check(context, topic.name, partition, may_change)
            except KafkaError as err:
                answer.error_code = err.code
                answer.error_message = err.message
            yield
        yield
    return response


def failed(
    request: AlterPartitionReassignmentsRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[AlterPartitionReassignmentsResponse]:
    """Returns the error at the top level and in each requested partition, as Kafka's request class does."""
    response = AlterPartitionReassignmentsResponse(error_code=code, error_message=message)
    for topic in request.topics:
        answer = ReassignableTopicResponse(name=topic.name)
        response.responses.append(answer)
        for one in topic.partitions:
            number = one.partition_index
            answer.partitions.append(
                ReassignablePartitionResponse(partition_index=number, error_code=code, error_message=message)
            )
            yield
    return response


def _check(context: Context, topic: str, wanted: ReassignablePartition, may_change_factor: bool) -> None:
    image = context.broker.metadata.image
    if topic not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {shown_name(topic)}.")
    partition = image.partition(topic, wanted.partition_index)
    if partition is None:
        reason = f"Unable to find partition {topic}:{wanted.partition_index}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
    if wanted.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_assignment(image, wanted.replicas, None, context.node_id, wanted.partition_index)
    present = len(partition.replicas)
    if not may_change_factor and present != len(wanted.replicas):
        reason = f"The replication factor is changed from {present} to {len(wanted.replicas)}"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    if tuple(wanted.replicas) != partition.replicas:
        reason = "This cluster has one broker: a partition cannot move to or from another one."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)

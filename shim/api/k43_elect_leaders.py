"""ElectLeaders (key 43), versions 0-2.

The only replica is the leader, so the result of a partition is ELECTION_NOT_NEEDED; of an offline partition, which has
no leader, PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE. Null requests all partitions; those that
need no election are then left out. v1 adds the type of election (0 preferred, 1 unclean) and a top-level error. A
`timeout_ms` of 0 or less is over before the election: REQUEST_TIMED_OUT, unless nothing is requested.
"""

from __future__ import annotations

from kafka_shim.api.partitions import led_by
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.topics import shown_name
from kafka_shim.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kafka_shim.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 43, 0, 2
REQUEST, RESPONSE = ElectLeadersRequest, ElectLeadersResponse
ABANDONABLE = True

PREFERRED, UNCLEAN = 0, 1


def handle(context: Context, request: ElectLeadersRequest) -> Steps[ElectLeadersResponse]:
    broker, kind = context.broker, request.election_type
    if request.topic_partitions == []:
        return ElectLeadersResponse()
    if request.timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    if kind not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
    response = ElectLeadersResponse()
    if request.topic_partitions is None:
        image = broker.metadata.image
        for topic in list(image.topics.values()):
            needed = []
            for number in range(len(topic.partitions)):
                result = _elect(broker, kind, topic.name, number)
                if result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                    needed.append(result)
                yield
            if image.topics_by_id.get(topic.topic_id) is topic:  # else it was deleted meanwhile
                response.replica_election_results.append(
                    ReplicaElectionResult(topic=topic.name, partition_result=needed)
                )
            yield
        return response
    for wanted in request.topic_partitions:
        results: list[PartitionResult] = []
        response.replica_election_results.append(ReplicaElectionResult(topic=wanted.topic, partition_result=results))
        for one in wanted.partitions:
            results.append(_elect(broker, kind, wanted.topic, one))
            yield
        yield
    return response


def failed(
    request: ElectLeadersRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[ElectLeadersResponse]:
    """Returns the error at the top level and in each requested partition, as Kafka's request class does."""
    response = ElectLeadersResponse(error_code=code if version >= 1 else ErrorCode.NONE)
    for topic in request.topic_partitions or ():
        result = ReplicaElectionResult(topic=topic.topic)
        response.replica_election_results.append(result)
        for one in topic.partitions:
            result.partition_result.append(PartitionResult(partition_id=one, error_code=code, error_message=message))
            yield
    return response


def _elect(broker: Broker, election_type: int, name: str, number: int) -> PartitionResult:
    image = broker.metadata.image
    topic = image.topics.get(name)
    partition = image.partition(name, number)
    if topic is None:
        code, reason = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {shown_name(name)}"
    elif partition is None:
        code, reason = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}"
    elif led_by(broker, topic, partition) >= 0:
        code, reason = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    elif election_type == PREFERRED:
        code, reason = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    else:
        code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        reason = "Eligible topic partition leaders are not available."
    return PartitionResult(partition_id=number, error_code=code, error_message=reason)

"""ElectLeaders (key 43), versions 0-2.

The only replica is always the leader, so the result of each requested partition that exists is ELECTION_NOT_NEEDED.
Null requests all partitions; those that need no election are then left out, as in Kafka. v1 adds the type of election
(0 preferred, 1 unclean) and a top-level error.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kafka_shim.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Image

KEY, MIN, MAX = 43, 0, 2
REQUEST, RESPONSE = ElectLeadersRequest, ElectLeadersResponse

PREFERRED, UNCLEAN = 0, 1


def handle(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    image = context.broker.metadata.image
    if request.topic_partitions is None:
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(topic=name) for name in image.topics]
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic, partition_result=[_elect(image, topic.topic, one) for one in topic.partitions]
            )
            for topic in request.topic_partitions
        ]
    )


def failed(request: ElectLeadersRequest, version: int, code: ErrorCode, message: str | None) -> ElectLeadersResponse:
    """Returns the error at the top level and in each requested partition, as Kafka's request class does."""
    return ElectLeadersResponse(
        error_code=code if version >= 1 else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=one, error_code=code, error_message=message)
                    for one in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _elect(image: Image, topic: str, partition: int) -> PartitionResult:
    if topic not in image.topics:
        code, reason = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}"
    elif image.partition(topic, partition) is None:
        code, reason = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{partition}"
    else:
        code = ErrorCode.ELECTION_NOT_NEEDED
        reason = "Leader election not needed for topic partition."
    return PartitionResult(partition_id=partition, error_code=code, error_message=reason)

"""ListPartitionReassignments (key 46), version 0.

Nothing is ever moved between brokers here. A directory that Kafka left during a reassignment shows that reassignment.
"""

from __future__ import annotations

from kafka_shim.api.partitions import named_partitions
from kafka_shim.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kafka_shim.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 46, 0, 0
REQUEST, RESPONSE = ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
ABANDONABLE = True


def handle(context: Context, request: ListPartitionReassignmentsRequest) -> Steps[ListPartitionReassignmentsResponse]:
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = yield from named_partitions((asked.name, asked.partition_indexes) for asked in request.topics)
    response = ListPartitionReassignmentsResponse(error_message=None)
    for topic in list(context.broker.metadata.image.topics.values()):
        moving = [
            OngoingPartitionReassignment(
                partition_index=one.partition,
                replicas=list(one.replicas),
                adding_replicas=list(one.adding_replicas),
                removing_replicas=list(one.removing_replicas),
            )
            for one in topic.partitions
            if (one.adding_replicas or one.removing_replicas)
            and (wanted is None or (topic.name, one.partition) in wanted)
        ]
        if moving:
            response.topics.append(OngoingTopicReassignment(name=topic.name, partitions=moving))
        yield
    return response

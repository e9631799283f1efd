"""DescribeQuorum (key 55), versions 0-2.

The quorum of `__cluster_metadata` is this node alone: it is the leader, the only voter, and always up to date. v1 adds
the times, v2 directory ids, listeners of the voters and error messages. Any other partition is
UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.metadata.topics import UNKNOWN_TOPIC_MESSAGE
from kafka_shim.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kafka_shim.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.describe_quorum_request import TopicData as AskedTopic
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 55, 0, 2
REQUEST, RESPONSE = DescribeQuorumRequest, DescribeQuorumResponse
ABANDONABLE = True

FIRST_WITH_NODES = 2


def handle(context: Context, request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    response = DescribeQuorumResponse()
    if not _is_of_metadata(request.topics):
        for topic in request.topics:
            answers: list[PartitionData] = []
            response.topics.append(TopicData(topic_name=topic.topic_name, partitions=answers))
            for asked in topic.partitions:
                answers.append(
                    PartitionData(
                        partition_index=asked.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=UNKNOWN_TOPIC_MESSAGE,
                    )
                )
                yield
            yield
        return response
    metadata = context.broker.metadata
    now_ms = context.broker.clock.now_ms()
    voter = ReplicaState(
        replica_id=context.node_id,
        log_end_offset=metadata.next_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = PartitionData(
        error_message=None,
        leader_id=context.node_id,
        leader_epoch=metadata.epoch,
        high_watermark=metadata.next_offset,
        current_voters=[voter],
    )
    response.topics = [TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])]
    if context.api_version >= FIRST_WITH_NODES:
        listener = Listener()
        listener.name, listener.host, listener.port = _address(context)
        response.nodes = [Node(node_id=context.node_id, listeners=[listener])]
        voter.replica_directory_id = metadata.voter_directory_id
    return response


def _is_of_metadata(topics: Sequence[AskedTopic]) -> bool:
    """Returns whether the request is for the partition of the metadata alone (RaftUtil.hasValidTopicPartition)."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return False
    return topics[0].topic_name == CLUSTER_METADATA_TOPIC and topics[0].partitions[0].partition_index == 0


def _address(context: Context) -> tuple[str, str, int]:
    """Returns the controller's listener: its name, host and port. Without one, the listener that the client dialled."""
    listeners = context.broker.controller_listeners
    if not listeners or context.listener is listeners[0]:
        return (context.listener.name, *context.session.advertised())
    first = listeners[0]
    return first.name, first.advertised_host or context.session.local_host, first.advertised_port or first.port

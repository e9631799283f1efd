"""AssignReplicasToDirs (key 73), version 0, of the controller.

A broker reports in which directory its replicas are (KIP-858). This node records that itself, so a report is compared
with what is recorded: the same is accepted, a partition that is elsewhere is NOT_LEADER_OR_FOLLOWER.
"""

from __future__ import annotations

from kafka_shim.api.controller.brokers import check_broker_epoch
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.features import DIRECTORIES, METADATA_VERSION
from kafka_shim.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from kafka_shim.protocol.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 73, 0, 0
REQUEST, RESPONSE = AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


def handle(context: Context, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    features = context.broker.metadata.image.features
    if features.get(METADATA_VERSION, 0) < DIRECTORIES:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    check_broker_epoch(context, request.broker_id, request.broker_epoch)
    return AssignReplicasToDirsResponse(
        directories=[
            DirectoryData(
                id=directory.id,
                topics=[
                    TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            PartitionData(
                                partition_index=one.partition_index,
                                error_code=_compare(context, directory.id, topic.topic_id, one.partition_index),
                            )
                            for one in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )


def _compare(context: Context, directory_id: bytes, topic_id: bytes, number: int) -> ErrorCode:
    topic = context.broker.metadata.image.topics_by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= number < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.partitions[number]
    assigned = dict(zip(partition.replicas, partition.directories, strict=False))
    return ErrorCode.NONE if assigned.get(context.node_id) == directory_id else ErrorCode.NOT_LEADER_OR_FOLLOWER

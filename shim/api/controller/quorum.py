"""What the APIs of the metadata quorum share. The quorum is this node alone, its leader and only voter (Kafka:
KafkaRaftClient, RaftUtil).
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.context import Context

# The id of `__cluster_metadata`.
METADATA_TOPIC_ID = (1).to_bytes(16)
FIRST_WITH_ENDPOINTS = 1


def request_fault(context: Context, request: Any) -> ErrorCode | None:
    """Returns the error of a whole request: of another cluster, or not of the one partition of the metadata topic."""
    if request.cluster_id is not None and request.cluster_id != context.broker.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_name != CLUSTER_METADATA_TOPIC:
        return ErrorCode.INVALID_REQUEST
    partitions = topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != 0:
        return ErrorCode.INVALID_REQUEST
    return None


def leader_fault(context: Context, epoch: int) -> ErrorCode:
    """Returns the error of a request to the leader of this epoch, or NONE."""
    own = context.broker.metadata.epoch
    if epoch == own:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if epoch < own else ErrorCode.UNKNOWN_LEADER_EPOCH


def member_fault(context: Context, member_id: int, epoch: int) -> ErrorCode:
    """Returns the error of a request from a member of the quorum, or NONE. A newer epoch is refused: in a quorum of one
    nobody else can have begun it."""
    own = context.broker.metadata.epoch
    if epoch < own:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if member_id < 0 or epoch > own else ErrorCode.NONE


def is_other_voter(context: Context, voter_id: int, directory_id: bytes) -> bool:
    """Returns whether a request was meant for another voter than this node. An id below 0 or no directory fits all."""
    if voter_id < 0:
        return False
    own = context.broker.metadata.directory_id
    return voter_id != context.node_id or (directory_id != bytes(16) and directory_id != own)


def add_endpoint(context: Context, response: Any, node_endpoint: Any) -> None:
    """Add this node's address on the listener that the client dialled, in versions that have it."""
    if context.api_version >= FIRST_WITH_ENDPOINTS:
        host, port = context.session.advertised()
        response.node_endpoints = [node_endpoint(node_id=context.node_id, host=host, port=port)]

"""FetchSnapshot (key 59), versions 0-1, of the controller: a snapshot of the metadata log, in pieces (KIP-630).

Returns at most `max_bytes` of the file from `position`. A snapshot that is not there is SNAPSHOT_NOT_FOUND, a position
outside of it POSITION_OUT_OF_RANGE; another partition UNKNOWN_TOPIC_OR_PARTITION. v1 has endpoints.
"""

from __future__ import annotations

from kafka_shim.api.controller.quorum import add_endpoint, leader_fault
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kafka_shim.protocol.messages.fetch_snapshot_request import PartitionSnapshot as Asked
from kafka_shim.protocol.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 59, 0, 1
REQUEST, RESPONSE = FetchSnapshotRequest, FetchSnapshotResponse

# The most that one answer holds in memory.
MOST_BYTES = 8 << 20


def handle(context: Context, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    if request.cluster_id not in (None, context.broker.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    pairs = [(topic.name, one) for topic in request.topics for one in topic.partitions]
    if len(pairs) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    ((name, asked),) = pairs
    answer = PartitionSnapshot(index=asked.partition, unaligned_records=b"")
    if (name, asked.partition) == (CLUSTER_METADATA_TOPIC, 0):
        answer.current_leader = LeaderIdAndEpoch(leader_id=context.node_id, leader_epoch=context.broker.metadata.epoch)
        answer.error_code = leader_fault(context, asked.current_leader_epoch)
        if not answer.error_code:
            _read(context, asked, request.max_bytes, answer)
    else:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = FetchSnapshotResponse(topics=[TopicSnapshot(name=name, partitions=[answer])])
    add_endpoint(context, response, NodeEndpoint)
    return response


def _read(context: Context, asked: Asked, max_bytes: int, answer: PartitionSnapshot) -> None:
    end_offset, epoch = asked.snapshot_id.end_offset, asked.snapshot_id.epoch
    if end_offset == 0:
        answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        return
    path = context.broker.metadata.snapshot_path(end_offset, epoch)
    try:
        with path.open("rb") as file:
            size_bytes = file.seek(0, 2)
            if not 0 <= asked.position < size_bytes:
                answer.error_code = ErrorCode.POSITION_OUT_OF_RANGE
                return
            file.seek(asked.position)
            answer.unaligned_records = file.read(max(min(max_bytes, MOST_BYTES), 0))
    except FileNotFoundError:
        answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        return
    except OSError as err:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(err)) from err
    answer.snapshot_id = SnapshotId(end_offset=end_offset, epoch=epoch)
    answer.size, answer.position = size_bytes, asked.position

"""AlterReplicaLogDirs (key 34), versions 1-2.

Moves partitions to other directories of `log.dirs` while they are written and read (KIP-113). The answer comes when the
moves have begun; DescribeLogDirs shows how far they are. A move to the directory that holds the partition ends its
move to another one. For a partition that does not exist yet the directory is remembered, and the answer is an error, as
in Kafka. LOG_DIR_NOT_FOUND: no such directory. INVALID_REPLICA_ASSIGNMENT: the directory is cordoned (KIP-1066).
KAFKA_STORAGE_ERROR: a directory cannot be used.
"""

from __future__ import annotations

import logging

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from kafka_shim.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context

KEY, MIN, MAX = 34, 1, 2
REQUEST, RESPONSE = AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

logger = logging.getLogger(__name__)


def handle(context: Context, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    # As in Kafka, the last directory that the request names for a partition is the one that counts.
    wanted = {
        (topic.name, partition): entry.path
        for entry in request.dirs
        for topic in entry.topics
        for partition in topic.partitions
    }
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (topic_name, index), path in wanted.items():
        result = results.setdefault(topic_name, AlterReplicaLogDirTopicResult(topic_name=topic_name))
        result.partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=_move(context, topic_name, index, path))
        )
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def failed(
    request: AlterReplicaLogDirsRequest, version: int, code: ErrorCode, message: str | None
) -> AlterReplicaLogDirsResponse:
    """Returns the error in every partition: the response has no place for it at the top level."""
    response = AlterReplicaLogDirsResponse()
    for entry in request.dirs:
        for topic in entry.topics:
            parts = [
                AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code)
                for partition in topic.partitions
            ]
            response.results.append(AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=parts))
    return response


def _move(context: Context, topic: str, partition: int, path: str) -> ErrorCode:
    broker = context.broker
    try:
        broker.logs.move(topic, partition, path)
    except KafkaError as err:
        logger.warning("%s-%d is not moved to %s: %s", topic, partition, path, err)
        is_known = broker.metadata.image.partition(topic, partition) is not None
        if err.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_known:
            return ErrorCode.REPLICA_NOT_AVAILABLE
        return err.code
    return ErrorCode.NONE

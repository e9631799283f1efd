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
from kafka_shim.plurals import counted
from kafka_shim.protocol.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from kafka_shim.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafka_shim.security.printable import MAX_NAME, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 34, 1, 2
REQUEST, RESPONSE = AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

logger = logging.getLogger(__name__)

# Log lines about partitions that are not moved, for one request: it may name any number.
MOST_LINES = 10


def handle(context: Context, request: AlterReplicaLogDirsRequest) -> Steps[AlterReplicaLogDirsResponse]:
    # As in Kafka, the last directory that the request names for a partition is the one that counts.
    wanted: dict[tuple[str, int], str] = {}
    for entry in request.dirs:
        for topic in entry.topics:
            for partition in topic.partitions:
                wanted[topic.name, partition] = entry.path
                yield
            yield
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    refused = 0
    for (topic_name, index), path in wanted.items():
        answer = AlterReplicaLogDirPartitionResult(partition_index=index)
        result = results.setdefault(topic_name, AlterReplicaLogDirTopicResult(topic_name=topic_name))
        result.partitions.append(answer)
        try:
            context.broker.logs.move(topic_name, index, path)
        except KafkaError as error:
            answer.error_code = _code(context, topic_name, index, error)
            refused += 1
            if refused <= MOST_LINES:
                name = printable(topic_name, MAX_NAME)
                logger.warning("%s-%d is not moved to %s: %s", name, index, printable(path, MAX_NAME), error)
        yield
    if refused > MOST_LINES:
        logger.warning("not moved either: %s", counted(refused - MOST_LINES, "more partition"))
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def failed(
    request: AlterReplicaLogDirsRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[AlterReplicaLogDirsResponse]:
    """Returns the error in every partition: the response has no place for it at the top level."""
    response = AlterReplicaLogDirsResponse()
    for entry in request.dirs:
        for topic in entry.topics:
            result = AlterReplicaLogDirTopicResult(topic_name=topic.name)
            response.results.append(result)
            for partition in topic.partitions:
                result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code))
                yield
    return response


def _code(context: Context, topic: str, partition: int, error: KafkaError) -> ErrorCode:
    is_known = context.broker.metadata.image.partition(topic, partition) is not None
    if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_known:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return error.code

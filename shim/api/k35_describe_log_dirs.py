"""DescribeLogDirs (key 35), versions 1-5.

Returns for each data directory its partitions with their sizes (all, or the requested ones), and the bytes of its file
system (v4). v3 adds a top-level error, v5 whether the directory is cordoned (never here). Partitions do not move
between directories: there are no future replicas and no lag. A directory that failed at start-up is
KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kafka_shim.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.storage.log_dirs import DirStatus

KEY, MIN, MAX = 35, 1, 5
REQUEST, RESPONSE = DescribeLogDirsRequest, DescribeLogDirsResponse


async def handle(context: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    logs = context.broker.logs
    response = DescribeLogDirsResponse(results=[_describe(status) for status in await logs.describe_dirs(wanted)])
    response.results += [
        DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR) for path in logs.failed_dirs
    ]
    return response


def _describe(status: DirStatus) -> DescribeLogDirsResult:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for topic, partition, size_bytes, _ in status.partitions:
        entry = topics.setdefault(topic, DescribeLogDirsTopic(name=topic))
        entry.partitions.append(DescribeLogDirsPartition(partition_index=partition, partition_size=size_bytes))
    return DescribeLogDirsResult(
        log_dir=status.path,
        topics=list(topics.values()),
        total_bytes=status.total_bytes,
        usable_bytes=status.usable_bytes,
    )

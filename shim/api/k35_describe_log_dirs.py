"""DescribeLogDirs (key 35), versions 1-5.

Returns for each data directory its partitions with their sizes (all, or the requested ones), and the bytes of its file
system (v4). v3 adds a top-level error, v5 whether the directory is cordoned, if the metadata.version knows of it. A
partition that moves between directories is shown in both: its copy is a future one, with its lag in offsets. A
directory that failed at start-up is KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from kafka_shim.api.partitions import named_partitions
from kafka_shim.errors import ErrorCode
from kafka_shim.metadata.features import CORDONED_DIRECTORIES, METADATA_VERSION
from kafka_shim.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kafka_shim.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.storage.describing import DirStatus
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 35, 1, 5
REQUEST, RESPONSE = DescribeLogDirsRequest, DescribeLogDirsResponse
ABANDONABLE = True

# Partitions that are described before other requests have their turn: a millisecond or two.
SLICE = 1000


def handle(context: Context, request: DescribeLogDirsRequest) -> Steps[Coroutine[Any, Any, DescribeLogDirsResponse]]:
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = yield from named_partitions((topic.topic, topic.partitions) for topic in request.topics)
    return _describe_all(context, wanted)


def failed(
    request: DescribeLogDirsRequest, version: int, code: ErrorCode, message: str | None
) -> DescribeLogDirsResponse:
    """Returns the error, and no directory. Versions below 3 have no place for it: clients take an answer without
    directories for a refusal."""
    return DescribeLogDirsResponse(error_code=code)


async def _describe_all(context: Context, wanted: set[tuple[str, int]] | None) -> DescribeLogDirsResponse:
    logs = context.broker.logs
    shows_cordoned = context.broker.metadata.feature(METADATA_VERSION) >= CORDONED_DIRECTORIES
    statuses = await logs.describe_dirs(wanted)
    response = DescribeLogDirsResponse(results=[await _describe(status, shows_cordoned) for status in statuses])
    response.results += [
        DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR) for path in logs.failed_dirs
    ]
    return response


async def _describe(status: DirStatus, shows_cordoned: bool) -> DescribeLogDirsResult:
    from asyncio import sleep

    topics: dict[str, DescribeLogDirsTopic] = {}
    for number, (topic, partition, size_bytes, _) in enumerate(status.partitions, 1):
        entry = topics.get(topic)
        if entry is None:
            entry = topics[topic] = DescribeLogDirsTopic(name=topic)
        entry.partitions.append(DescribeLogDirsPartition(partition_index=partition, partition_size=size_bytes))
        if number % SLICE == 0:
            await sleep(0)
    for topic, partition, size_bytes, lag in status.futures:
        entry = topics.setdefault(topic, DescribeLogDirsTopic(name=topic))
        entry.partitions.append(
            DescribeLogDirsPartition(
                partition_index=partition, partition_size=size_bytes, offset_lag=lag, is_future_key=True
            )
        )
    return DescribeLogDirsResult(
        log_dir=status.path,
        topics=list(topics.values()),
        total_bytes=status.total_bytes,
        usable_bytes=status.usable_bytes,
        is_cordoned=status.is_cordoned and shows_cordoned,
    )

"""Retention: deletes old segments by log start offset, size and time (Kafka: UnifiedLog.deleteOldSegments)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from kafka_shim.storage.leaving import Leaving
from kafka_shim.storage.local_log import REFUSALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.segments import Segment
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)

# (segment, the next segment or None) -> whether the segment may be deleted
Condition = Callable[["Segment", "Segment | None"], bool]


def delete_old_segments(log: PartitionLog, services: LogServices, now_ms: int) -> int:
    """Apply the topic's retention. Returns the number of deleted segments. Raises OSError.

    Segments are deleted from the oldest on, without gaps. If the active segment exceeds the time or size limit too, it
    is rolled first and then deleted. If the clock goes backwards, segments look younger and are deleted later, never
    too early. `retention.ms` or `retention.bytes` of -1 disables that limit. In a topic with only
    `cleanup.policy=compact`, only segments below the log start offset (DeleteRecords) are deleted."""
    deleted = 0
    for reason, may_go in _conditions(log, now_ms):
        count = _prepare(log, now_ms, sys.maxsize, reason, may_go)
        if count:
            leaving = Leaving(log, services, count)
            leaving.rename(f"{log.directory}/")
            leaving.end()
            deleted += count
    return deleted


def begin_to_delete(log: PartitionLog, services: LogServices, now_ms: int, most: int) -> Leaving | None:
    """As `delete_old_segments`, but the flusher thread renames the files: the caller ends what is returned once it is
    not under way any more, and calls again until there is nothing left, None. Raises OSError."""
    for reason, may_go in _conditions(log, now_ms):
        count = _prepare(log, now_ms, most, reason, may_go)
        if count:
            leaving = Leaving(log, services, count)
            try:
                leaving.rename_aside()
            except (OSError, MemoryError):
                leaving.rename(f"{log.directory}/")  # needs no descriptor
            return leaving
    return None


def _conditions(log: PartitionLog, now_ms: int) -> Iterator[tuple[str, Condition]]:
    yield "below the log start offset", _below_start(log)
    if log.config.delete:
        if log.config.retention_bytes >= 0:
            yield "over retention.bytes", _over_size(log)
        if log.config.retention_ms >= 0:
            yield "over retention.ms", _over_time(log, now_ms)


def _below_start(log: PartitionLog) -> Condition:
    return lambda segment, later: later is not None and later.base_offset <= log.log_start_offset


def _over_size(log: PartitionLog) -> Condition:
    over_bytes = log.size_bytes - log.config.retention_bytes

    def check(segment: Segment, later: Segment | None) -> bool:
        nonlocal over_bytes
        if over_bytes < segment.size_bytes:
            return False
        over_bytes -= segment.size_bytes
        return True

    return check


def _over_time(log: PartitionLog, now_ms: int) -> Condition:
    def check(segment: Segment, later: Segment | None) -> bool:
        return now_ms - segment.largest_timestamp_ms() > log.config.retention_ms

    return check


def _prepare(log: PartitionLog, now_ms: int, most: int, reason: str, may_go: Condition) -> int:
    """Return how many segments go, and raise the log start offset above them."""
    if log.leaving is not None:
        log.leaving.settle()
    segments = log.segments
    count = 0
    while count < min(len(segments), most):
        later = segments[count + 1] if count + 1 < len(segments) else None
        if (later is None and segments[count].size_bytes == 0) or not may_go(segments[count], later):
            break
        count += 1
    if count == len(segments):
        try:
            log.roll(now_ms)
        except OSError as err:
            if err.errno not in REFUSALS:
                raise
            count -= 1  # a full disk has no room for a new segment: the older ones make it
            if not count:
                raise
    if count:
        log.raise_start(segments[count].base_offset)
        for segment in segments[:count]:
            logger.info("%s: deleting segment %d: %s", log.name, segment.base_offset, reason)
    return count

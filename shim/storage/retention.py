"""Retention: deletes old segments by log start offset, size and time (Kafka: UnifiedLog.deleteOldSegments)."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

from kafka_shim.storage import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.segments import Segment
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)

# (segment, the next segment or None) -> whether the segment may be deleted
Condition = Callable[["Segment", "Segment | None"], bool]


def delete_old_segments(log: PartitionLog, services: LogServices, now_ms: int, most: int = sys.maxsize) -> int:
    """Apply the topic's retention, to at most so many segments. Returns the number of deleted segments. Raises OSError.

    Segments are deleted from the oldest on, without gaps. If the active segment exceeds the time or size limit too, it
    is rolled first and then deleted. If the clock goes backwards, segments look younger and are deleted later, never
    too early. `retention.ms` or `retention.bytes` of -1 disables that limit. In a topic with only
    `cleanup.policy=compact`, only segments below the log start offset (DeleteRecords) are deleted."""
    count = _delete_while(log, services, now_ms, most, "below the log start offset", _below_start(log))
    if log.config.delete:
        if log.config.retention_bytes >= 0:
            count += _delete_while(log, services, now_ms, most - count, "over retention.bytes", _over_size(log))
        if log.config.retention_ms >= 0:
            count += _delete_while(log, services, now_ms, most - count, "over retention.ms", _over_time(log, now_ms))
    return count


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


def _delete_while(
    log: PartitionLog, services: LogServices, now_ms: int, most: int, reason: str, may_go: Condition
) -> int:
    segments = log.segments
    count = 0
    while count < min(len(segments), most):
        later = segments[count + 1] if count + 1 < len(segments) else None
        if (later is None and segments[count].size_bytes == 0) or not may_go(segments[count], later):
            break
        count += 1
    if count == 0:
        return 0
    if count == len(segments):
        log.roll(now_ms)
    gone = segments[:count]
    start_offset = segments[count].base_offset
    log.raise_start(start_offset)
    try:
        for segment in gone:
            logger.info("%s: deleting segment %d: %s", log.name, segment.base_offset, reason)
            # A segment stays listed until its files have their new names: what there is no room or memory for is done
            # in the next round, and the log start offset is in the checkpoint as long as a file is below it.
            retire_segment(segment, services, log.config.file_delete_delay_ms)
            del segments[0]
            if segment.base_offset != start_offset:
                retire_snapshot(log.directory, segment.base_offset)
    finally:
        log.content_changed()
    return count


def retire_segment(segment: Segment, services: LogServices, delay_ms: int) -> None:
    """Rename a segment's files to `.deleted` and remove them after `delay_ms` (`file.delete.delay.ms`). Buffers that
    readers hold stay valid."""
    segment.abandon()
    segment.rename(names.DELETED)
    services.removals.after(delay_ms, segment.remove)


def retire_snapshot(directory: str, offset: int) -> None:
    """Remove the producer snapshot of a deleted segment. Does nothing if there is none."""
    try:
        os.unlink(f"{directory}/{names.file_name(offset, names.SNAPSHOT)}")
    except FileNotFoundError:
        return

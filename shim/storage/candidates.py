"""What decides whether a compacted partition is cleaned (Kafka: LogToClean, LogCleanerManager.cleanableOffsets)."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.segments import Segment


class Candidate:
    """The facts about a compacted partition that decide whether it is cleaned: offsets, clean and dirty bytes."""

    __slots__ = ("clean_bytes", "cleanable_bytes", "first_dirty_offset", "is_overdue", "log", "uncleanable_offset")

    def __init__(
        self,
        log: PartitionLog,
        first_dirty_offset: int,
        uncleanable_offset: int,
        clean_bytes: int,
        cleanable_bytes: int,
        is_overdue: bool,
    ) -> None:
        self.log = log
        self.first_dirty_offset = first_dirty_offset
        self.uncleanable_offset = uncleanable_offset
        self.clean_bytes = clean_bytes
        self.cleanable_bytes = cleanable_bytes
        self.is_overdue = is_overdue

    @property
    def ratio(self) -> float:
        """The dirty ratio: cleanable bytes divided by clean and cleanable bytes."""
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the ratio is above `min.cleanable.dirty.ratio` or `max.compaction.lag.ms` has passed."""
        return (self.is_overdue and self.cleanable_bytes > 0) or self.ratio > self.log.config.min_cleanable_dirty_ratio


def examine(log: PartitionLog, last_clean_offset: int | None, now_ms: int) -> Candidate:
    """Return the `Candidate` of a compacted partition, whether it is due or not."""
    first_dirty = log.log_start_offset if last_clean_offset is None else last_clean_offset
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        # Retention raised the log start offset above it, or the log was truncated below it. The whole log may be dirty.
        first_dirty = log.log_start_offset
    segments = log.segments
    base_offsets = [segment.base_offset for segment in segments]
    ends = [*base_offsets[1:], log.log_end_offset]
    # The first segment that has something dirty.
    dirty = bisect_right(ends, first_dirty)
    closed = segments[dirty:-1]
    bounds = [log.last_stable_offset, log.active.base_offset]
    if log.config.min_compaction_lag_ms > 0:
        young = now_ms - log.config.min_compaction_lag_ms
        bounds += [segment.base_offset for segment in closed if segment.largest_timestamp_ms() > young][:1]
    # Only whole segments are cleaned, and not the one that contains the bound.
    limit = min(max(bisect_right(ends, min(bounds)), dirty), len(segments) - 1)
    uncleanable = max(first_dirty, base_offsets[limit])
    cleanable_bytes = sum(segment.size_bytes for segment in segments[dirty:limit])
    clean_bytes = sum(segment.size_bytes for segment in segments[:dirty])
    return Candidate(log, first_dirty, uncleanable, clean_bytes, cleanable_bytes, _is_overdue(log, closed, now_ms))


def _is_overdue(log: PartitionLog, dirty: list[Segment], now_ms: int) -> bool:
    limit_ms = now_ms - max(log.config.max_compaction_lag_ms, 0)
    if limit_ms <= 0:
        return False
    for segment in dirty:
        segment.waited_ms(0, now_ms)  # loads `first_timestamp_ms`
        first_ms = segment.first_timestamp_ms
        if first_ms is not None and 0 < first_ms < limit_ms:
            return True
    return False

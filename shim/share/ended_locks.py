"""Acquisition locks of many share partitions that end at the same time: their timers are due in one turn of the loop,
and each release takes an append."""

from __future__ import annotations

import logging
from collections import deque

from kafka_shim.scheduler import Slice
from kafka_shim.share.share_partition import PartitionState
from kafka_shim.share.share_partition_acknowledge import release_expired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.clock import Clock
    from kafka_shim.scheduler import Scheduler
    from kafka_shim.share.share_partition import SharePartition

logger = logging.getLogger("kafka_shim.share")

# Share partitions whose locks end in one slice, also with a virtual clock.
MOST_AT_ONCE = 64
# Timers of one turn follow each other within so many microseconds.
SAME_TURN_US = 100
_TASK = "ended locks"


class EndedLocks:
    """Owned by `SharePartitions`. Event-loop thread only. Releases at once what a slice has time for, and the rest on
    later turns, in order; what somebody uses meanwhile stays locked for so much longer."""

    __slots__ = ("_clock", "_due", "_released_us", "_scheduler", "_slice")

    def __init__(self, clock: Clock, scheduler: Scheduler) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._slice = Slice(clock, MOST_AT_ONCE)
        # When the last release ended that was made at once.
        self._released_us = clock.monotonic_us()
        self._due: deque[tuple[SharePartition, list[tuple[int, int]], int]] = deque()

    def release(self, share: SharePartition, locks: list[tuple[int, int]], now_ms: int) -> None:
        """Locks on these offsets may have ended: release what was not renewed or given back."""
        monotonic_us = self._clock.monotonic_us
        if not self._due:
            if monotonic_us() - self._released_us > SAME_TURN_US:
                self._slice.begin()
            if not self._slice.is_over():
                release_expired(share, locks, now_ms)
                self._released_us = monotonic_us()
                return
        self._due.append((share, locks, now_ms))
        if not self._scheduler.is_scheduled(_TASK):
            self._scheduler.after(_TASK, 0, self._scheduler.in_slices, _TASK, self._slices())

    def _slices(self) -> Iterator[None]:
        part = Slice(self._clock, MOST_AT_ONCE)
        while self._due:
            share, locks, now_ms = self._due.popleft()
            if share.state is PartitionState.ACTIVE:
                try:
                    release_expired(share, locks, now_ms)
                except Exception as error:
                    # Raised further, it would keep the others locked.
                    share.state = PartitionState.FENCED  # what is stored counts; the next fetch reads it
                    if not isinstance(error, MemoryError):
                        logger.exception("the end of locks of %s for group %s failed", share.log.name, share.key[0])
            if part.is_over():
                yield
                part.begin()

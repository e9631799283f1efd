"""The acquisition locks of one share partition: when each ends (Kafka: AcquisitionLockTimerTask).

One timer waits for the lock that ends first. A lock that was renewed or given back stays here until its end comes;
whether it still holds is then read from the records themselves.
"""

from __future__ import annotations

import heapq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_shim.clock import Clock
    from kafka_shim.scheduler import Scheduler

    # End, first offset, last offset.
    Lock = tuple[int, int, int]

# Beyond so many locks, and twice those that still hold, only the latter stay.
MOST_STALE_LOCKS = 4096


class AcquisitionLocks:
    """Owned by its `SharePartition`. Event-loop thread only. `held` returns the locks that still hold; `ended` gets
    the offsets of locks that may have ended, and the time. `lost` is called if memory ended then: no lock ends any
    more."""

    __slots__ = ("_clock", "_ended", "_held", "_locks", "_lost", "_most", "_name", "_scheduler")

    def __init__(
        self,
        name: str,
        clock: Clock,
        scheduler: Scheduler,
        held: Callable[[], Iterable[Lock]],
        ended: Callable[[list[tuple[int, int]], int], None],
        lost: Callable[[], None],
    ) -> None:
        self._name = name
        self._clock = clock
        self._scheduler = scheduler
        self._held = held
        self._ended = ended
        self._lost = lost
        self._locks: list[Lock] = []
        self._most = MOST_STALE_LOCKS

    def __len__(self) -> int:
        return len(self._locks)

    def begin(self, first_offset: int, last_offset: int, duration_ms: int) -> int:
        """Begin a lock on these offsets. Returns its end."""
        until_ms = self._clock.monotonic_ms() + duration_ms
        if len(self._locks) >= self._most:
            self._forget_stale()
        heapq.heappush(self._locks, (until_ms, first_offset, last_offset))
        if not self._scheduler.is_scheduled(self._name) or self._locks[0][0] == until_ms:
            self._schedule()
        return until_ms

    def stop(self) -> None:
        """Wait for no end any more: the share partition is fenced."""
        self._scheduler.cancel(self._name)
        # They are of the share partition, which has these locks: a cycle would wait for the garbage collector.
        self._held = tuple
        self._ended = _ignore
        self._lost = _nothing

    def _forget_stale(self) -> None:
        self._locks = list(self._held())
        heapq.heapify(self._locks)
        self._most = max(MOST_STALE_LOCKS, 2 * len(self._locks))

    def _schedule(self) -> None:
        if self._locks:
            delay_ms = max(0, self._locks[0][0] - self._clock.monotonic_ms())
            self._scheduler.after(self._name, delay_ms, self._expire)

    def _expire(self) -> None:
        try:
            self._expire_due()
        except MemoryError:
            self._lost()
            raise

    def _expire_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        due: list[tuple[int, int]] = []
        while self._locks and self._locks[0][0] <= now_ms:
            _, first_offset, last_offset = heapq.heappop(self._locks)
            due.append((first_offset, last_offset))
        self._schedule()
        self._ended(due, now_ms)


def _ignore(due: list[tuple[int, int]], now_ms: int) -> None:
    pass


def _nothing() -> None:
    pass

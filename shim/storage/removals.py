"""The files of deleted segments, partitions and topics wait here until `file.delete.delay.ms` has passed (Kafka:
UnifiedLog schedules each at its own time)."""

from __future__ import annotations

from collections import deque

from kafka_shim.scheduler import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.clock import Clock
    from kafka_shim.storage.flusher import Flusher

    Removal = Callable[[], Iterator[object] | None]

# The delay after which removals are tried again that found no memory.
NO_MEMORY_RETRY_MS = 60_000
# Removals that are passed to the flusher in one turn of the loop.
REMOVALS_PER_TURN = 100


class Removals:
    """Retention may delete ten thousand segments at once, so removals with one delay share a timer: they are due in the
    order in which they came. Owned by `LogServices`. Event-loop thread only; the removals run in the flusher thread."""

    __slots__ = ("_flusher", "_monotonic_ms", "_scheduler", "_waiting")

    def __init__(self, clock: Clock, flusher: Flusher) -> None:
        self._monotonic_ms = clock.monotonic_ms
        self._flusher = flusher
        self._scheduler = Scheduler(clock)
        # When each is due, by delay in milliseconds.
        self._waiting: dict[int, deque[tuple[float, Removal]]] = {}

    def after(self, delay_ms: int, removal: Removal) -> None:
        """Run `removal` once after the delay."""
        waiting = self._waiting.setdefault(delay_ms, deque())
        waiting.append((self._monotonic_ms() + delay_ms, removal))
        self._arm(delay_ms)

    def recover(self) -> None:
        """Have those removed that wait without a timer: there was no memory for it. Called periodically."""
        for delay_ms in list(self._waiting):
            if not self._scheduler.is_scheduled(str(delay_ms)):
                self._pass_on(delay_ms)

    def _arm(self, delay_ms: int) -> None:
        name = str(delay_ms)
        if not self._scheduler.is_scheduled(name):
            due_ms = self._waiting[delay_ms][0][0]
            self._scheduler.after(name, max(due_ms - self._monotonic_ms(), 0), self._pass_on, delay_ms)

    def _pass_on(self, delay_ms: int) -> None:
        waiting = self._waiting[delay_ms]
        try:
            for _ in range(REMOVALS_PER_TURN):
                if not waiting or waiting[0][0] > self._monotonic_ms():
                    break
                self._flusher.run(waiting[0][1])
                waiting.popleft()
        except MemoryError:
            self._scheduler.after(str(delay_ms), NO_MEMORY_RETRY_MS, self._pass_on, delay_ms)
            raise
        if waiting:
            self._arm(delay_ms)
        else:
            del self._waiting[delay_ms]

    def cancel_all(self) -> None:
        """Forget what waits, at a stop. The next start removes the files."""
        self._scheduler.stop()
        self._waiting.clear()

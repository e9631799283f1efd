"""How a request waits: until something wakes it, or until its timeout has passed on the broker's clock."""

from __future__ import annotations

import asyncio

from kafka_shim.cext.waits import PauseBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock


# The most that a wait of a client lasts which begins while a virtual clock is moved.
LONGEST_IN_ADVANCE_MS = 3_600_000


class Waiter:
    """Belongs to one parked request. `wake` may be called anywhere on the loop's thread, also before `wait`: it is then
    kept until the next `wait`. Pass `waiter.wake` to `PartitionLog.subscribe`."""

    __slots__ = ("_clock", "_pause", "_woken", "operation")

    def __init__(self, clock: Clock, operation: str = "") -> None:
        """`operation` is Kafka's name of the purgatory, for metrics; what only pauses has none."""
        self._clock = clock
        self.operation = operation
        self._pause: Pause | None = None
        self._woken = False

    def wake(self) -> None:
        """End the current wait, or the next one if none is in progress. Cheap and idempotent. If no memory is left for
        that, the wait ends with its timeout: who wakes it has done what it was asked for, and must not fail."""
        waited = self._pause
        if waited is None:
            self._woken = True
        else:
            waited.end(True)

    async def wait(self, timeout_ms: float) -> bool:
        """Returns True if woken, False if `timeout_ms` passed first. May be called again. Only one caller may wait at a
        time."""
        if self._woken:
            self._woken = False
            return True
        if timeout_ms <= 0:
            return False
        self._pause = waited = Pause(asyncio.get_running_loop())
        try:
            timer = self._clock.call_later(timeout_ms, waited.expire)
            try:
                return await waited
            finally:
                timer.cancel()
        finally:
            self._pause = None


class Pause(PauseBase):
    """What the task of a request awaits."""

    __slots__ = ()

    CANCELLED = asyncio.CancelledError

    def expire(self) -> None:
        """Of a timer, after which nothing else may come."""
        self.end(False)
        if not self.done() and asyncio.current_task() is None:
            self.go_on_now()


def deadline_ms(clock: Clock, wait_ms: float) -> float:
    """Returns the monotonic time at which a client's wait for records ends that begins now. While a virtual clock is
    moved for live clients that is its end, or an hour later: consumers ask again at once, on the machine's time, and
    would hold the clock up at each 500 ms of a week."""
    now_ms = clock.monotonic_ms()
    if clock.is_virtual:
        return max(now_ms + wait_ms, min(clock.heard_until_ms(), now_ms + LONGEST_IN_ADVANCE_MS))
    return now_ms + wait_ms


async def pause(clock: Clock, parked: set[Waiter], delay_ms: float) -> None:
    """Wait on the broker's clock, at most until a clean stop wakes what is in `parked`."""
    waiter = Waiter(clock)
    parked.add(waiter)
    try:
        await waiter.wait(delay_ms)
    finally:
        parked.discard(waiter)

"""How a request waits: until something wakes it, or until its timeout has passed on the broker's clock."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock


# The most that a wait of a client lasts which begins while a virtual clock is moved.
LONGEST_IN_ADVANCE_MS = 3_600_000


class Waiter:
    """Belongs to one parked request. `wake` may be called anywhere on the loop's thread, also before `wait`: it is then
    kept until the next `wait`. Pass `waiter.wake` to `PartitionLog.subscribe`."""

    __slots__ = ("_clock", "_future", "_woken", "operation")

    def __init__(self, clock: Clock, operation: str = "") -> None:
        """`operation` is Kafka's name of the purgatory, for metrics; what only pauses has none."""
        self._clock = clock
        self.operation = operation
        self._future: asyncio.Future[bool] | None = None
        self._woken = False

    def wake(self) -> None:
        """End the current wait, or the next one if none is in progress. Cheap and idempotent."""
        future = self._future
        if future is None:
            self._woken = True
        elif not future.done():
            future.set_result(True)

    async def wait(self, timeout_ms: float) -> bool:
        """Returns True if woken, False if `timeout_ms` passed first. May be called again. Only one caller may wait at a
        time."""
        if self._woken:
            self._woken = False
            return True
        if timeout_ms <= 0:
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._future = future
        timer = self._clock.call_later(timeout_ms, _expire, future)
        try:
            return await future
        finally:
            self._future = None
            timer.cancel()


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


def _expire(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)

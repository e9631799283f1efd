"""How a request waits: until something wakes it, or until its timeout has passed on the broker's clock."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextvars import Context
    from typing import Any

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
        self._pause: _Pause | None = None
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
        self._pause = waited = _Pause(asyncio.get_running_loop())
        try:
            timer = self._clock.call_later(timeout_ms, waited.expire)
            try:
                return await waited
            finally:
                timer.cancel()
        finally:
            self._pause = None


class _Pause:
    """What the task of a request awaits: as much of a future as a task asks for. A future that finds no memory to have
    its task called has forgotten it, and the task can be neither woken nor cancelled any more. This one remembers it
    until the event loop has the call."""

    __slots__ = ("_asyncio_future_blocking", "_call", "_context", "_is_cancelled", "_is_woken", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False
        self._call: Callable[[_Pause], object] | None = None
        self._context: Context | None = None
        self._is_cancelled = False
        self._is_woken: bool | None = None
        self._loop = loop

    def end(self, is_woken: bool) -> None:
        if self._is_woken is None:
            self._is_woken = is_woken
        self._go_on()

    def expire(self) -> None:
        """Of a timer, after which nothing else may come."""
        self.end(False)
        call, context = self._call, self._context
        if call is not None and context is not None and asyncio.current_task() is None:
            self._call = None
            context.run(call, self)

    def _go_on(self) -> None:
        if self._call is not None:
            try:
                self._loop.call_soon(self._call, self, context=self._context)
            except MemoryError:
                return  # what comes next tries again, at last the timer
            self._call = None

    # --- what a task calls, and a virtual clock

    def __await__(self) -> Generator[_Pause, None, bool]:
        if self._is_woken is None:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def done(self) -> bool:
        """Whether the task goes on, or will without anything else."""
        return self._call is None and (self._is_woken is not None or self._is_cancelled)

    def add_done_callback(self, call: Callable[[_Pause], object], *, context: Context) -> None:
        self._call, self._context = call, context

    def cancel(self, msg: Any = None) -> bool:
        if self._call is None:
            return False
        self._is_cancelled = True
        self._go_on()
        return True

    def result(self) -> bool:
        if self._is_cancelled:
            raise asyncio.CancelledError
        return self._is_woken is True


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

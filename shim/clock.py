"""The only place that reads a clock. Everything that waits or expires asks the broker's `Clock`.

`RealClock` follows the machine; `VirtualClock` stands still until a test moves it. Timers run on the event loop thread.
"""

from __future__ import annotations

import asyncio
import heapq
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Timer(Protocol):
        """What `call_later` answers; cancelling twice, or after it fired, does nothing."""

        def cancel(self) -> None: ...


class Clock:
    """Time and timers of one broker. Event-loop thread only, except `now_ms` and `monotonic_ms`."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch. May go backwards when someone sets the machine's clock."""
        raise NotImplementedError

    def monotonic_ms(self) -> int:
        """Milliseconds from some start; never goes backwards. For durations and deadlines."""
        raise NotImplementedError

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Run `callback(*args)` on the loop when `delay_ms` have passed (at once, on the next turn, when <= 0)."""
        raise NotImplementedError

    async def sleep_ms(self, delay_ms: float) -> None:
        """Return when `delay_ms` have passed on this clock."""
        future = asyncio.get_running_loop().create_future()
        timer = self.call_later(delay_ms, _finish, future)
        try:
            await future
        finally:
            timer.cancel()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class RealClock(Clock):
    """The machine's clock, with the running loop's timers (`loop` may be given before it runs)."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:
        loop = self._loop or asyncio.get_running_loop()
        return loop.call_later(max(delay_ms, 0) / 1000, callback, *args)


class _VirtualTimer:
    __slots__ = ("args", "callback", "due_ms", "number")

    def __init__(
        self, due_ms: float, number: int, callback: Callable[..., object] | None, args: tuple[Any, ...]
    ) -> None:
        self.due_ms = due_ms
        self.number = number  # ties fire in the order they were set
        self.callback = callback
        self.args = args

    def __lt__(self, other: _VirtualTimer) -> bool:
        return (self.due_ms, self.number) < (other.due_ms, other.number)

    def cancel(self) -> None:
        self.callback = None
        self.args = ()


class VirtualClock(Clock):
    """A clock that only a test moves. `advance` fires due timers in order, each at its own instant.

    Starts at `start_ms`, by default at the machine's time: records that are far ahead of a broker's clock are refused.
    """

    def __init__(self, start_ms: int | None = None) -> None:
        self._start_ms = time.time_ns() // 1_000_000 if start_ms is None else start_ms
        self._elapsed_ms: float = 0
        self._wall_shift_ms = 0
        self._numbers = 0
        self._timers: list[_VirtualTimer] = []

    def now_ms(self) -> int:
        return self._start_ms + self._wall_shift_ms + int(self._elapsed_ms)

    def monotonic_ms(self) -> int:
        return int(self._elapsed_ms)

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:
        self._numbers += 1
        timer = _VirtualTimer(self._elapsed_ms + max(delay_ms, 0), self._numbers, callback, args)
        if delay_ms <= 0:
            # Nothing has to move for it: it runs on the next turn of the loop, like a real one.
            asyncio.get_running_loop().call_soon(_fire, timer)
        else:
            heapq.heappush(self._timers, timer)
        return timer

    def set_wall(self, now_ms: int) -> None:
        """Set the wall clock as an operator would, backwards or forwards; timers do not notice."""
        self._wall_shift_ms = now_ms - self._start_ms - int(self._elapsed_ms)

    def advance(self, delay_ms: float) -> None:
        """Move on by `delay_ms`, firing timers as their instants pass. What they wake as tasks runs on later turns of
        the loop; `advance_and_settle` lets those run in between."""
        target_ms = self._elapsed_ms + delay_ms
        while self._fire_next(target_ms):
            pass
        self._elapsed_ms = target_ms

    async def advance_and_settle(self, delay_ms: float) -> None:
        """As `advance`, and give woken tasks the loop before the next instant: chains of waits unroll in order."""
        target_ms = self._elapsed_ms + delay_ms
        await _settle()
        while self._fire_next(target_ms):
            await _settle()
        self._elapsed_ms = target_ms
        await _settle()

    def _fire_next(self, target_ms: float) -> bool:
        while self._timers and self._timers[0].due_ms <= target_ms:
            timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                self._elapsed_ms = max(self._elapsed_ms, timer.due_ms)
                _fire(timer)
                return True
        return False


def _fire(timer: _VirtualTimer) -> None:
    callback, args = timer.callback, timer.args
    timer.cancel()
    if callback is not None:
        callback(*args)


async def _settle() -> None:
    # A woken task may need a few turns: future -> task -> handler -> reply.
    for _ in range(8):
        await asyncio.sleep(0)

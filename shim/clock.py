"""The only module that reads a clock. Everything that waits or expires uses the broker's `Clock`.

`RealClock` follows the machine. `VirtualClock` stands still until a test advances it. Timers run on the event loop
thread. Random values come from `clock.random`, which is seeded under a virtual clock.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time

from kafka_shim.cext.machine_time import MachineTime
from kafka_shim.periodic import Repeating
from kafka_shim.randomness import Randomness
from kafka_shim.timer_failures import TimerFailures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    class Timer(Protocol):
        """The handle that `call_later` and `every` return. Cancelling it twice, or after it ran, does nothing."""

        def cancel(self) -> None: ...


class Clock:
    """Time, timers and randomness of one broker. Event-loop thread only, except `now_ms`, `monotonic_ms`,
    `monotonic_us` and methods that say otherwise."""

    random: Randomness
    is_virtual = False

    def now_ms(self) -> int:
        """Returns milliseconds since the Unix epoch. May go backwards if the machine's clock is set."""
        raise NotImplementedError

    def monotonic_ms(self) -> int:
        """Returns milliseconds since an arbitrary start. Never goes backwards. For durations and deadlines."""
        raise NotImplementedError

    def monotonic_us(self) -> int:
        """Returns microseconds since that start. For a part of a turn of the loop."""
        raise NotImplementedError

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Run `callback(*args)` on the loop after `delay_ms`. If `delay_ms` <= 0, it runs on the next turn of the
        loop."""
        raise NotImplementedError

    def every(self, interval_ms: float, action: Callable[[], object], first_ms: float | None = None) -> Timer:
        """Run `action` on the loop every `interval_ms`, also after it raised or memory ended; the first time after
        `first_ms`, if that is given."""
        raise NotImplementedError

    async def sleep_ms(self, delay_ms: float) -> None:
        """Return after `delay_ms` on this clock."""
        future = asyncio.get_running_loop().create_future()
        timer = self.call_later(delay_ms, _finish, future)
        try:
            await future
        finally:
            timer.cancel()

    # --- threads

    def begin_work(self) -> None:
        """Announce work of a thread: a virtual clock stands still until `end_work`. May be called from any thread."""

    def soon(self) -> Callable[[Callable[[], None]], object]:
        """Returns what calls a function on the next turn of the running event loop, for which a virtual clock stands
        still. What is returned may be called where no loop runs."""
        return asyncio.get_running_loop().call_soon

    def end_work(self) -> None:
        """End the work of one `begin_work`, after its results were passed to the loop. May be called from any
        thread."""

    def pause(self) -> Pause:
        """Returns a wait for a thread in the middle of its work."""
        return Pause()

    # --- clients

    def heard_until_ms(self) -> float:
        """Returns the monotonic time until which every connected client counts as alive, whatever it sent. Only a
        virtual clock that is advanced for live clients sets it."""
        return -1


class Pause:
    """Lets a thread wait on the machine's time. Only one thread waits at a time; any other may call `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def wait(self, delay_ms: float) -> None:
        """Return after `delay_ms`, or after `stop`."""
        self._stopped.wait(delay_ms / 1000)

    def stop(self) -> None:
        """End the current wait, and every later one at once."""
        self._stopped.set()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class RealClock(MachineTime, Clock):
    """The machine's clock, with the running loop's timers (`loop` may be given before it runs)."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop
        self._running_loop = asyncio.get_running_loop
        self.random = Randomness()

    def every(self, interval_ms: float, action: Callable[[], object], first_ms: float | None = None) -> Timer:
        return Repeating(self.call_later, interval_ms, action, interval_ms if first_ms is None else first_ms)


class _VirtualTimer:
    __slots__ = ("args", "callback", "interval_ms")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], interval_ms: float = 0) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.interval_ms = interval_ms  # of `every`, else 0

    def cancel(self) -> None:
        self.callback = None
        self.args = ()


# A loop that is not idle after so many turns polls itself, and no clock can wait for it.
MOST_TURNS = 1_000_000
# Due timers that wake nobody are run in a row; after so many, others get the loop.
TIMERS_PER_TURN = 1000


class VirtualClock(Clock):
    """A clock that only a test advances. `advance` runs the due timers in order, each at its own time.

    Starts at `start_ms`, by default at the machine's time, because a broker refuses records whose timestamps are far
    ahead of its clock. `seed` repeats the ids of the run that had this `random.seed`. Two brokers must not use one seed
    with the same data directory: the second would generate the ids of the first again.
    """

    is_virtual = True

    def __init__(self, start_ms: int | None = None, seed: int | None = None) -> None:
        self._start_ms = time.time_ns() // 1_000_000 if start_ms is None else start_ms
        self.random = Randomness.seeded(seed)
        self._elapsed_ms: float = 0
        self._wall_shift_ms = 0
        # (due, number, timer): ties fire in the order they were set.
        self._timers: list[tuple[float, int, _VirtualTimer]] = []
        self._numbers = 0
        self._heard_until_ms: float = -1
        # What must run before the next instant: timers without a delay, of this loop; new tasks and work of threads.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._soon = 0
        self._has_new_work = False
        self._awaited: list[asyncio.Future[Any]] = []  # what tasks wait for while all of them do
        self._is_advancing = False
        self._failures = TimerFailures()
        # What threads work on, and who waits for its end.
        self._lock = threading.Lock()
        self._work = 0
        self._idle: asyncio.Future[None] | None = None

    def now_ms(self) -> int:
        return self._start_ms + self._wall_shift_ms + int(self._elapsed_ms)

    def monotonic_ms(self) -> int:
        return int(self._elapsed_ms)

    def monotonic_us(self) -> int:
        return int(self._elapsed_ms * 1000)

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:
        timer = _VirtualTimer(callback, args)
        if delay_ms <= 0:
            # It needs no advance: it runs on the next turn of the loop, as with a real clock.
            loop = asyncio.get_running_loop()
            self._soon = self._soon + 1 if loop is self._loop else 1
            self._loop = loop
            loop.call_soon(self._fire_soon, timer)
        else:
            self._push(delay_ms, timer)
        return timer

    def every(self, interval_ms: float, action: Callable[[], object], first_ms: float | None = None) -> Timer:
        timer = _VirtualTimer(action, (), interval_ms)
        self._push(interval_ms if first_ms is None else first_ms, timer)
        return timer

    def _push(self, delay_ms: float, timer: _VirtualTimer) -> None:
        self._numbers += 1
        heapq.heappush(self._timers, (self._elapsed_ms + delay_ms, self._numbers, timer))

    def heard_until_ms(self) -> float:
        return self._heard_until_ms

    # --- moving it

    def set_wall(self, now_ms: int) -> None:
        """Set the wall clock forwards or backwards, as an operator would. Timers are not affected."""
        self._wall_shift_ms = now_ms - self._start_ms - int(self._elapsed_ms)

    def rewind(self) -> None:
        """Go back to the start, with the same seed and no timers. Only while no broker uses the clock."""
        self._elapsed_ms = self._wall_shift_ms = 0
        self._heard_until_ms = -1
        self._timers.clear()
        self.random = Randomness.seeded(self.random.seed)

    def advance(self, delay_ms: float) -> None:
        """Advance by `delay_ms` and run each timer at its time; then raise what the first one raised that failed,
        with the failures of others as notes. Tasks that the timers wake, and work that they pass to threads, run later;
        `advance_and_drain` waits for both."""
        target_ms = self._elapsed_ms + delay_ms
        while self._fire_next(target_ms):
            pass
        self._elapsed_ms = target_ms
        if (failure := self._failures.take()) is not None:
            raise failure

    async def advance_and_drain(self, delay_ms: float, *, clients_alive: bool = False) -> None:
        """As `advance`, but wait before each time step until woken tasks, work in slices and the work of threads are
        done. `clients_alive`: connected clients count as alive during the whole advance. Raises RuntimeError if another
        advance is under way."""
        if self._is_advancing:
            raise RuntimeError("the clock is being advanced already: wait until that call returns")
        loop = asyncio.get_running_loop()
        former = loop.get_task_factory()
        self._is_advancing = True
        loop.set_task_factory(self._make_task)
        try:
            target_ms = self._elapsed_ms + delay_ms
            if clients_alive:
                self._heard_until_ms = target_ms
            await self._rest(loop)
            fired = 0
            while self._fire_next(target_ms):
                fired += 1
                if self._is_stirred() or fired % TIMERS_PER_TURN == 0:
                    await self._rest(loop)
            self._elapsed_ms = target_ms
            await self._rest(loop)
        finally:
            loop.set_task_factory(former)
            self._is_advancing = False
            # Less than was wanted, if the loop ends meanwhile.
            self._heard_until_ms = min(self._heard_until_ms, self._elapsed_ms)
            failure = self._failures.take()  # the next advance has its own
        if failure is not None:
            raise failure

    def _make_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        self._has_new_work = True
        return asyncio.Task(work, loop=loop, **options)

    def _fire_next(self, target_ms: float) -> bool:
        timers = self._timers
        while timers and timers[0][0] <= target_ms:
            due_ms, _, timer = timers[0]
            callback = timer.callback
            if callback is None:
                heapq.heappop(timers)
                continue
            self._elapsed_ms = max(self._elapsed_ms, due_ms)
            args = timer.args
            if timer.interval_ms:
                self._numbers += 1
                heapq.heapreplace(timers, (due_ms + timer.interval_ms, self._numbers, timer))
            else:
                heapq.heappop(timers)
                timer.cancel()
            try:
                callback(*args)
            except Exception as error:
                # The others have their time too: what a client waits for meanwhile lasts to the end of the advance.
                self._failures.add(error)
            return True
        return False

    def _fire_soon(self, timer: _VirtualTimer) -> None:
        self._soon -= 1
        callback, args = timer.callback, timer.args
        timer.cancel()
        if callback is not None:
            callback(*args)

    def _is_stirred(self) -> bool:
        """Returns whether a timer created work: a task, a later turn of the loop, or work for a thread."""
        if self._soon or self._work or self._has_new_work:
            return True
        for future in self._awaited:  # noqa: SIM110 a generator costs more than what it asks, at every timer
            if future.done():
                return True
        return False

    async def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        """Return when every task waits for something unfinished, no step is left for a later turn, and no thread
        works."""
        current = asyncio.current_task()
        await asyncio.sleep(0)
        for _ in range(MOST_TURNS):
            had_work = self._work > 0  # what its threads gave the loop at their end runs within the next turn
            await asyncio.sleep(0)
            if self._work:
                await self._idleness(loop)
                continue
            if had_work or (self._soon and self._loop is loop):
                continue
            awaited = list(_awaited(task for task in asyncio.all_tasks(loop) if task is not current))
            if all(future is not None and not future.done() for future in awaited):
                self._awaited = awaited  # type: ignore[assignment]
                self._has_new_work = False
                return
        raise RuntimeError(f"work is left after {MOST_TURNS} turns of the loop: {asyncio.all_tasks(loop)}")

    def soon(self) -> Callable[[Callable[[], None]], object]:
        call_soon = asyncio.get_running_loop().call_soon

        def call(function: Callable[[], None]) -> None:
            call_soon(function)
            self._has_new_work = True

        return call

    def begin_work(self) -> None:
        with self._lock:
            self._work += 1
            self._has_new_work = True  # also if it ends before the clock looks: what it gave the loop is still to come

    def end_work(self) -> None:
        with self._lock:
            self._work -= 1
            idle = None if self._work else self._idle
            if idle is not None:
                self._idle = None
                # After everything that the threads passed to the loop.
                idle.get_loop().call_soon_threadsafe(_finish, idle)

    async def _idleness(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if not self._work:
                return
            idle = self._idle = loop.create_future()
        await idle

    def pause(self) -> Pause:
        return _VirtualPause(self, asyncio._get_running_loop())


def _awaited(tasks: Iterator[asyncio.Task[Any]]) -> Iterator[asyncio.Future[Any] | None]:
    # The future that a task waits for, or None if it is about to run. asyncio has it in all its tasks, undocumented.
    for task in tasks:
        if not task.done():
            yield getattr(task, "_fut_waiter", None)


class _VirtualPause(Pause):
    """The clock may advance while its thread waits here, because the thread then does no work."""

    def __init__(self, clock: VirtualClock, loop: asyncio.AbstractEventLoop | None) -> None:
        super().__init__()
        self._clock = clock
        self._loop = loop
        self._maker = threading.get_ident()
        self._lock = threading.Lock()
        self._over: threading.Event | None = None  # set at the end of the wait under way

    def wait(self, delay_ms: float) -> None:
        if self._loop is None or threading.get_ident() == self._maker:
            return  # nobody could move the clock meanwhile
        with self._lock:
            if self._stopped.is_set():
                return
            self._over = over = threading.Event()
        self._loop.call_soon_threadsafe(self._clock.call_later, delay_ms, self._end)
        self._clock.end_work()
        over.wait()

    def stop(self) -> None:
        self._stopped.set()
        self._end()

    def _end(self) -> None:
        with self._lock:
            over, self._over = self._over, None
            if over is not None:
                self._clock.begin_work()
                over.set()

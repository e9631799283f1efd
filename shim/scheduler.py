"""Delayed work, periodic work, and work in slices, for every part of the broker (Kafka: KafkaScheduler).

Waits of one request or one group member are elsewhere: `waiters.Waiter`, `group.timers`.
"""

from __future__ import annotations

from kafka_shim.cext.turns import SliceBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any, TypeVar

    from kafka_shim.clock import Clock, Timer

    T = TypeVar("T")


# How long a slice of a long task may hold the loop. A client with one request under way is served once or twice between
# two slices: if these took 1 ms, the requests of one that sends 1,000 a second would wait behind each other.
SLICE_US = 250
# A turn of the loop that takes less has only looked for events.
IDLE_TURN_US = 20
# Others get no more than this after one slice: it is enough for a hundred requests that came while a disk stood still.
MOST_REST_US = 5000
_NOTHING = object()


def take_one(steps: Iterator[object]) -> bool:
    """Take the next step. Returns False if there is none."""
    return next(steps, _NOTHING) is not _NOTHING


class Slice(SliceBase):
    """A slice of a task with very many parts of unknown cost: the files of a new partition take 0.1 ms on one machine
    and 2 ms on another. `begin` a slice, and again after each pause. Event-loop thread only."""

    __slots__ = ()

    def __init__(self, clock: Clock, most: int) -> None:
        """`most`: how many parts a slice has at most, also with a virtual clock, which stands still meanwhile."""
        self._clock = clock
        self._most = most
        self.begin()

    def begin(self) -> None:
        """Begin a slice now."""
        self._ends_us = self._clock.monotonic_us() + SLICE_US
        self._left = self._most

    def taken_us(self) -> int:
        """Returns how long ago it began."""
        now_us: int = self._clock.monotonic_us()
        return now_us - self._ends_us + SLICE_US


class Rest:
    """The turns of the event loop between two slices. A client with one request under way is served once a turn: if
    each turn had a slice, the requests of one that sends 1,000 a second would wait behind each other where a slice
    takes a millisecond. So if others use the first turn, they get as much time as the slice took; else the next slice
    follows at once. With a virtual clock, which stands still meanwhile, it always does. Event-loop thread only."""

    __slots__ = ("_begun_us", "_clock", "_ends_us", "_is_first")

    def __init__(self, clock: Clock, took_us: float = 0) -> None:
        self._clock = clock
        self.begin(took_us)

    def begin(self, took_us: float) -> None:
        """Begin now, after a slice that took so long."""
        self._begun_us = self._clock.monotonic_us()
        self._ends_us = self._begun_us + min(took_us, MOST_REST_US)
        self._is_first = True

    def wait_ms(self) -> int:
        """Returns what to wait before the next look, 0 for the next turn; below 0 if it is over. To be asked on each
        turn that begins with the next one."""
        now_us = self._clock.monotonic_us()
        is_idle = self._is_first and now_us - self._begun_us < IDLE_TURN_US
        self._is_first = False
        if is_idle or now_us >= self._ends_us:
            return -1
        return int(self._ends_us - now_us) // 1000

    async def after(self, took_us: float) -> None:
        """Rest after a slice that took so long."""
        import asyncio

        self.begin(took_us)
        await asyncio.sleep(0)
        while (wait_ms := self.wait_ms()) >= 0:
            await self._clock.sleep_ms(wait_ms)


class Scheduler:
    """The tasks of one part of the broker, by name. A new task replaces the one with its name. Event-loop thread only.
    Uses the broker's clock, so that a virtual clock controls all tasks. A task that raises runs again when it is next
    due, and its error goes to the loop's exception handler."""

    __slots__ = ("_clock", "_tasks")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, Timer] = {}

    def every(self, name: str, interval_ms: float, action: Callable[[], object], first_ms: float | None = None) -> None:
        """Run `action` each time the interval has passed; the first time after `first_ms`, if that is given."""
        self.cancel(name)
        self._keep(name, self._clock.every(interval_ms, action, first_ms))

    def after(self, name: str, delay_ms: float, action: Callable[..., object], *args: Any) -> None:
        """Run `action(*args)` once, after the delay."""
        self.cancel(name)
        self._keep(name, self._clock.call_later(delay_ms, self._run, name, action, args))

    def _keep(self, name: str, timer: Timer) -> None:
        try:
            self._tasks[name] = timer
        except MemoryError:
            timer.cancel()  # else it would run, and nobody could stop it
            raise

    def _run(self, name: str, action: Callable[..., object], args: tuple[Any, ...]) -> None:
        del self._tasks[name]
        action(*args)

    def in_slices(self, name: str, slices: Iterator[object], pause_ms: float = 0) -> None:
        """Run an iterator to its end: one slice at once, each further slice after a `Rest`, or after a pause that is at
        least as long as the slice before it. If memory ends in a slice, they are over, as after any other error of
        theirs."""
        self.cancel(name)
        clock = self._clock
        began_us = clock.monotonic_us()
        while take_one(slices):
            took_us = clock.monotonic_us() - began_us
            try:
                if pause_ms:
                    self.after(name, max(pause_ms, took_us / 1000), self.in_slices, name, slices, pause_ms)
                else:
                    self.after(name, 0, self._rest, name, slices, Rest(clock, took_us))
            except MemoryError:
                continue  # at once, without memory for a timer: nobody else would go on
            return

    def _rest(self, name: str, slices: Iterator[object], rest: Rest) -> None:
        wait_ms = rest.wait_ms()
        if wait_ms >= 0:
            try:
                self.after(name, wait_ms, self._rest, name, slices, rest)
            except MemoryError:
                pass  # as in `in_slices`
            else:
                return
        self.in_slices(name, slices)

    async def finish(self, name: str, slices: Generator[object, None, T]) -> T:
        """As `in_slices`, for one who waits for the end. Returns or raises what the slices do. They run to their end
        also if the one who waits goes away; a `stop` ends both."""
        import asyncio

        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def run() -> Generator[object, None, None]:
            try:
                result = yield from slices
            except GeneratorExit:
                done.cancel()
                raise
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self.in_slices(name, run())
        return await done

    def is_scheduled(self, name: str) -> bool:
        """Returns whether this task is still scheduled."""
        return name in self._tasks

    def cancel(self, name: str) -> None:
        """Cancel a task. Does nothing if there is none of that name."""
        timer = self._tasks.pop(name, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Cancel all tasks."""
        for timer in self._tasks.values():
            timer.cancel()
        self._tasks.clear()

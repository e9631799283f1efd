"""Work on one request in steps, so that a request with very many entries holds up no other connection.

A handler whose work grows with its request is a generator that yields after each entry. The steps of an ordinary
request all run at once. Where they take longer than a turn's share, the others follow on later turns of the event loop:
one share at a time, whatever the number of such requests, each in its turn, and between two shares a `scheduler.Rest`
(docs/adr/0045-large-requests.md).
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import CoroutineType

from kafka_shim.scheduler import SLICE_US, Rest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from typing import Any, Protocol, TypeVar

    from kafka_shim.clock import Clock

    T = TypeVar("T")
    Steps = Generator[None, None, T]

    class Throttle(Protocol):
        """Counts the time that the broker works on one request."""

        def resume(self) -> None: ...
        def wait(self) -> None: ...


# How long a request is worked on before others get their turn.
SHARE_US = SLICE_US
# The most steps that are taken between two looks at the clock: a step can be anything from a microsecond to a new
# partition's files. A virtual clock stands still meanwhile, so that the looks are bounded too.
STEPS_BETWEEN_LOOKS = 8
MOST_LOOKS = 128


class Turns:
    """Owned by the broker. Event-loop thread only."""

    __slots__ = ("_clock", "_has_turn", "_rest", "_under_way")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Whether the loop has a turn to come in which the next share is taken.
        self._has_turn = False
        self._rest = Rest(clock)
        self._under_way: deque[tuple[Steps[Any], asyncio.Future[Any], Throttle | None]] = deque()

    def finish(self, steps: Steps[T], throttle: Throttle | None = None) -> T | Coroutine[Any, Any, T]:
        """Take the steps. Returns their result, or a coroutine that returns it if they take more than a share of this
        turn. Between two steps the broker's state may change. `throttle` counts the time of later turns."""
        try:
            self._take_share(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        return self._finish_later(steps, throttle)

    async def run(self, steps: Steps[T | Coroutine[Any, Any, T]], throttle: Throttle | None) -> T:
        """Take the steps in a task. Returns their result, or that of the coroutine in which they end."""
        if throttle is not None:
            throttle.resume()
        try:
            result = self.finish(steps, throttle)
        finally:
            if throttle is not None:
                throttle.wait()
        while isinstance(result, CoroutineType):
            result = await result
        return result  # type: ignore[return-value]

    def _take_share(self, steps: Steps[Any]) -> None:
        """Raises StopIteration at the end of the steps."""
        next(steps)  # the only one of most requests, which look at no clock
        monotonic_us = self._clock.monotonic_us
        before_us = monotonic_us()
        ends_us = before_us + SHARE_US
        count = 1
        for _ in range(MOST_LOOKS):
            for _ in range(count):
                next(steps)
            now_us = monotonic_us()
            if now_us >= ends_us:
                return
            is_slow = (now_us - before_us) * 4 > SHARE_US
            count = 1 if is_slow else min(2 * count, STEPS_BETWEEN_LOOKS)
            before_us = now_us

    async def _finish_later(self, steps: Steps[T], throttle: Throttle | None) -> T:
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._under_way.append((steps, result, throttle))
        if not self._has_turn:
            try:
                self._rest.begin(SHARE_US)
                self._ask_for_turn()
            except MemoryError:
                self._under_way.pop()
                raise
        return await result

    def _ask_for_turn(self, wait_ms: int = 0) -> None:
        self._clock.call_later(wait_ms, self._take_turn)
        self._has_turn = True

    def _take_turn(self) -> None:
        self._has_turn = False
        try:
            self._take_next_after_rest()
        finally:
            self._ask_or_go_on()

    def _ask_or_go_on(self) -> None:
        while self._under_way and not self._has_turn:
            try:
                self._ask_for_turn()
            except MemoryError:
                self._take_next()  # without another turn: nobody else would go on, and what ends gives memory back

    def _goes_on_resting(self) -> bool:
        """Returns whether the rest is not over; then another turn was asked for."""
        try:
            wait_ms = self._rest.wait_ms()
            if wait_ms >= 0:
                self._ask_for_turn(wait_ms)
        except MemoryError:
            pass  # without a rest
        return self._has_turn

    def _take_next_after_rest(self) -> None:
        if self._goes_on_resting():
            return
        began_us = self._clock.monotonic_us()
        self._take_next()
        self._rest.begin(self._clock.monotonic_us() - began_us)

    def _take_next(self) -> None:
        steps, result, throttle = self._under_way[0]
        if throttle is not None:
            throttle.resume()
        try:
            self._take_or_close(steps, result, throttle)
        except StopIteration as end:
            result.set_result(end.value)
        except Exception as error:
            result.set_exception(error)
        finally:
            if throttle is not None:
                throttle.wait()
            self._under_way.popleft()

    def _take_or_close(self, steps: Steps[T], result: asyncio.Future[T], throttle: Throttle | None) -> None:
        """Raises StopIteration at the end of the steps."""
        if result.cancelled():
            steps.close()
        else:
            self._take_share(steps)
            self._under_way.append((steps, result, throttle))


def at_once(steps: Steps[T]) -> T:
    """Take all steps in this turn of the loop."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

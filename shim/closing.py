"""Closes very many connections a part a turn of the loop. The clients of a stopped process go away all at once: a turn
that ended thousands of their connections took over 50 ms."""

from __future__ import annotations

from collections import deque

from kafka_shim.scheduler import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.clock import Clock

# Connections closed per turn: about a quarter of a millisecond.
CLOSES_PER_TURN = 16


class Closing:
    """Owned by the registry. Event-loop thread only."""

    __slots__ = ("_late", "_left", "_scheduler")

    def __init__(self, clock: Clock) -> None:
        self._scheduler = Scheduler(clock)
        # How many this turn may still close, and those that wait for a later one.
        self._left = CLOSES_PER_TURN
        self._late: deque[Callable[[], object]] = deque()

    def take(self) -> bool:
        """Count a connection that closes in this turn. Returns False, and counts nothing, if it must wait for a
        later one."""
        if self._left == CLOSES_PER_TURN:
            try:
                self._scheduler.after("turn", 0, self._next_turn)
            except MemoryError:
                return True  # nobody would close what waits, and what closes gives memory back
        if self._left == 0:
            return False
        self._left -= 1
        return True

    def later(self, close: Callable[[], object]) -> None:
        """Close one for which `take` had no room, on a later turn. `close` does nothing if it was closed meanwhile."""
        self._late.append(close)

    def run(self, close: Callable[[], object]) -> None:
        """Close one in this turn or on a later one."""
        if self.take():
            close()
        else:
            self.later(close)

    def stop(self) -> None:
        """Forget those that wait: the server closes all connections."""
        self._scheduler.stop()
        self._late.clear()

    def _next_turn(self) -> None:
        self._left = CLOSES_PER_TURN
        while self._late and self.take():
            self._late.popleft()()

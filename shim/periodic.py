"""Periodic work on the timers of an event loop, each of which fires once. It goes on also if memory ended when its next
run was to be set: spare timers were started before, and each that fires starts those that are missing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# After how many intervals the spare timers fire.
SPARES = (8, 64)


class Repeating:
    """Re-armed before each run, so that it continues after a run that raises. `call_later` is that of a clock."""

    __slots__ = ("_action", "_call_later", "_delays_ms", "_timers")

    def __init__(
        self, call_later: Callable[..., Any], interval_ms: float, action: Callable[[], object], first_ms: float
    ) -> None:
        self._call_later = call_later
        self._action = action
        self._delays_ms = [interval_ms, *(interval_ms * intervals for intervals in SPARES)]
        # That of the next run, and the spare ones. None: there was no memory for it.
        self._timers: list[Any] = [None] * len(self._delays_ms)
        self._timers[0] = call_later(first_ms, self._fire, 0)
        try:
            self._start()
        except MemoryError:
            self.cancel()  # else it would run, and nobody could stop it
            raise

    def _start(self) -> None:
        for number, timer in enumerate(self._timers):
            if timer is None:
                self._timers[number] = self._call_later(self._delays_ms[number], self._fire, number)

    def _fire(self, number: int) -> None:
        self._timers[number] = None
        try:
            self._start()
        finally:
            if number == 0:
                self._action()

    def cancel(self) -> None:
        """Stop the work. Does nothing if it is stopped."""
        for timer in self._timers:
            if timer is not None:
                timer.cancel()

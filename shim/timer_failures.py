"""What the timers of one advance of a virtual clock raised."""

from __future__ import annotations

from contextlib import suppress
from traceback import format_exception

# A timer that fails each second of a week fails 600,000 times.
MOST_TOLD = 8


class TimerFailures:
    """The failure of the first timer that failed, with those of others as its notes."""

    __slots__ = ("_first", "_others")

    def __init__(self) -> None:
        self._first: Exception | None = None
        self._others = 0

    def add(self, error: Exception) -> None:
        """Another timer failed."""
        if self._first is None:
            self._first = error
        elif error is not self._first:
            self._others += 1
            if self._others <= MOST_TOLD:
                with suppress(MemoryError):  # the timers that follow have their time all the same
                    self._first.add_note(f"Another timer failed later:\n{''.join(format_exception(error)).rstrip()}")

    def take(self) -> Exception | None:
        """Returns the failure of the first, and forgets all."""
        first, others = self._first, self._others
        self._first, self._others = None, 0
        if first is not None and others > MOST_TOLD:
            first.add_note(f"{others - MOST_TOLD} more timers failed later.")
        return first

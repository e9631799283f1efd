"""The responses to the delayed joins and syncs of a large group, which are sent on several turns of the event loop."""

from __future__ import annotations

from collections import deque

from kafka_shim.cext.replies import complete_all, wake_first
from kafka_shim.group.timers import NO_MEMORY_RETRY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from kafka_shim.group.decision import Token
    from kafka_shim.group.timers import Timers
    from kafka_shim.outcome import Flushes
    from kafka_shim.scheduler import Scheduler

# Delayed joins and syncs that are answered in one turn: a few milliseconds.
REPLIES_PER_TURN = 64


class LateResponses:
    """Owned by the runtime, with whose timers and scheduler it works. All have their response at once, whatever happens
    to the group later. They are sent it on several turns, on which the timers of their sessions are started too. What
    finds no memory is tried again: nobody else does it."""

    __slots__ = ("_completed", "_scheduler", "_timers")

    def __init__(self, timers: Timers, scheduler: Scheduler) -> None:
        self._timers = timers
        self._scheduler = scheduler
        self._completed: deque[Token] = deque()

    def complete(self, replies: list[tuple[Token, Any]], flushes: Flushes) -> None:
        """Complete these requests, which are sent their responses later."""
        self._completed += complete_all(replies, flushes)
        self.go_on()

    def go_on(self) -> None:
        """Send what is left on this turn and later ones, unless that is under way. Called again where memory ended."""
        if (self._completed or self._timers.has_deferred) and not self._scheduler.is_scheduled("answers"):
            self._begin()

    def _begin(self) -> None:
        self._scheduler.in_slices("answers", self._send())

    def _send(self) -> Generator[None, None, None]:
        try:
            while self._timers.schedule_deferred(REPLIES_PER_TURN) or self._completed:
                wake_first(self._completed, REPLIES_PER_TURN)
                yield
        except MemoryError:
            self._scheduler.after("answers", NO_MEMORY_RETRY_MS, self._begin)

    def send_all(self) -> None:
        """Send all now, at the end of the groups."""
        while self._completed:
            self._completed.popleft().wake()

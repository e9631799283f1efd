"""The timers of all groups on the broker's clock. Moving a timer to a later time, as every heartbeat does, costs one
assignment.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from contextlib import suppress
from itertools import islice

from kafka_shim.cext.timers import TimerEntry, TimersBase
from kafka_shim.group.decision import SESSION
from kafka_shim.scheduler import SLICE_US

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.clock import Clock
    from kafka_shim.group.decision import TimerMoves

    # (group id, kind, member id)
    Key = tuple[str, str, str]


logger = logging.getLogger("kafka_shim.group")

# The maximum number of timers called per turn of the loop, in which none is called after a slice of time: each takes
# milliseconds in a group with an expression that matches thousands of topics. Many are due together when, for
# example, a thousand members did not return after a restart of the broker.
CALLS_PER_TURN = 100
# How many timers of the clock go on after they were stopped. To stop one and to start another costs six times as much
# as to move one: of each member that comes to a group, and at each rebalance.
MOST_SPARE = 128
# The delay after which a timer that found no memory is looked at again.
NO_MEMORY_RETRY_MS = 1000


class Timers(TimersBase):
    """Owned by the coordinator, which is called with the key of each due timer. A key has one timer. If the call
    raises, the error is logged, `on_error` is called with the key, and the other timers are called all the same."""

    __slots__ = (
        "_called",
        "_ends_us",
        "_on_due",
        "_turn_ends_ms",
        "is_alive",
        "on_error",
    )

    def __init__(self, clock: Clock, on_due: Callable[[Key], None]) -> None:
        self._clock = clock
        self._on_due = on_due
        # Whether a timer waits for a connected client, which can send nothing while a virtual clock is advanced.
        self.is_alive: Callable[[Key], bool] = _nobody
        self.on_error: Callable[[Key], None] = _nothing
        self._entries: dict[Key, TimerEntry] = {}
        # Timers that are started or moved on one of the next turns: when they are due, and their delays.
        self._deferred: dict[Key, tuple[float, float]] = {}
        # Those that were stopped and whose timers of the clock go on: the next that is due later than one of them takes
        # it. None with a virtual clock, whose timers are what a test sees.
        self._spare: list[TimerEntry] = []
        self._most_spare = 0 if clock.is_virtual else MOST_SPARE
        # For this turn of the loop: the number of timers called, when no more are, and those that wait for another.
        self._called = 0
        self._ends_us = 0
        self._late: deque[TimerEntry] = deque()
        # When the next turn has come, also if no memory was left to call `_next_turn`.
        self._turn_ends_ms = 0.0
        # Whether an entry may be overdue with no timer of the clock: memory ended also when it was to be tried again.
        self._has_lost = False

    def __len__(self) -> int:
        return len(self._entries.keys() | self._deferred.keys())

    def defer_sessions(self, moves: TimerMoves) -> TimerMoves:
        """Have `schedule_deferred` start or move the timers of sessions, for those of very many members at once:
        cancelling and starting a thousand timers of the loop takes milliseconds. Returns the other moves."""
        return self.defer_kind(SESSION, moves)

    @property
    def has_deferred(self) -> bool:
        """Whether there are timers that `schedule_deferred` is to start."""
        return bool(self._deferred)

    def schedule_deferred(self, count: int) -> bool:
        """Start or move `count` of the timers that were deferred. Returns whether there were any. One for which memory
        does not suffice stays deferred."""
        keys = list(islice(self._deferred, count))
        for key in keys:
            due_ms, delay_ms = deferred = self._deferred[key]
            try:
                self.schedule(key, due_ms - self._clock.monotonic_ms())
            except MemoryError:
                self._deferred[key] = deferred  # without a timer its member would never be given up
                raise
            self._entries[key].delay_ms = delay_ms
        return bool(keys)

    def _call(self, entry: TimerEntry) -> None:
        key = entry.key
        if key is None:
            if entry in self._spare:
                self._spare.remove(entry)
                entry.timer = None
            return
        if self._late or self._has_lost:
            self._catch_up()
        try:
            self._call_due(key, entry)
        except MemoryError:
            # Without a timer its member would never be given up.
            was_lost, self._has_lost = self._has_lost, True
            entry.timer = self._clock.call_later(NO_MEMORY_RETRY_MS, self._call, entry)
            self._has_lost = was_lost

    def _call_due(self, key: Key, entry: TimerEntry) -> None:
        if self._entries.get(key) is not entry:
            return
        if key in self._deferred:
            entry.due_ms, entry.delay_ms = self._deferred.pop(key)
        left_ms = entry.due_ms - self._clock.monotonic_ms()
        if left_ms <= 0 and self._clock.is_virtual and self.is_alive(key):
            entry.due_ms = max(entry.due_ms, self._clock.heard_until_ms() + entry.delay_ms)
            left_ms = entry.due_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            self._arm(key, entry, left_ms)
            return
        if self._called == 0 or self._clock.monotonic_ms() >= self._turn_ends_ms:
            self._begin_turn()
        elif self._is_over():
            self._late.append(entry)
            return
        self._called += 1
        # It stays known until it was called: what fails for lack of memory may find none to be started again either.
        entry.armed_ms = math.inf  # `schedule` makes another
        entry.timer = None  # which has the entry: a cycle, which would wait for the garbage collector
        self._call_on_due(key)
        if self._entries.get(key) is entry:
            del self._entries[key]

    def _call_on_due(self, key: Key) -> None:
        try:  # in a function of its own, which is short: `QuickCompletion.quick_steps`
            self._on_due(key)
        except Exception:
            # Raised further, it would keep the others that wait in this turn from being called.
            logger.exception("timer %s of group %s failed", key[1], key[0])
            self.on_error(key)

    def _is_over(self) -> bool:
        clock = self._clock  # a virtual one may be advanced by days in one turn
        return self._called >= CALLS_PER_TURN or (not clock.is_virtual and clock.monotonic_us() >= self._ends_us)

    def _begin_turn(self) -> None:
        self._clock.call_later(0, self._next_turn)
        self._turn_ends_ms = self._clock.monotonic_ms() + NO_MEMORY_RETRY_MS
        self._called = 0
        self._ends_us = self._clock.monotonic_us() + SLICE_US

    def _catch_up(self) -> None:
        # Not here: the caller may be in the middle of a change of another group.
        if self._clock.monotonic_ms() >= self._turn_ends_ms:
            with suppress(MemoryError):  # then the next event tries it, or `recover`
                self._begin_turn()

    def recover(self) -> None:
        """Have the timers called that found no memory, and none for their next attempt."""
        if self._late or self._has_lost:
            self._catch_up()

    def _next_turn(self) -> None:
        self._called = 0
        if self._has_lost:
            self._find_lost()
        late = self._late
        self._has_lost = True  # until each is called, has a timer, or waits for the next turn
        while late and not (self._called and self._is_over()):
            self._call(late.popleft())
        self._has_lost = False

    def _find_lost(self) -> None:
        self._late.clear()
        armed_until_ms = self._clock.monotonic_ms() + 1  # a timer of the loop may be early by less
        for entry in self._entries.values():
            if entry.armed_ms <= armed_until_ms or entry.armed_ms == math.inf:
                self._late.append(entry)
                if entry.timer is not None:
                    entry.timer.cancel()  # that of the next attempt, if it has one

    def cancel_those(self, is_meant: Callable[[str], bool]) -> None:
        """Stop the timers of the groups that are meant."""
        for key in [one for one in self._entries.keys() | self._deferred.keys() if is_meant(one[0])]:
            self.cancel(key)

    def due_in_ms(self, key: Key) -> float | None:
        """Returns the time until the timer is due in milliseconds, or None if it is not running."""
        if key in self._deferred:
            due_ms: float = self._deferred[key][0]
        else:
            entry = self._entries.get(key)
            if entry is None or entry.timer is None:
                return None
            due_ms = entry.due_ms
        now_ms: float = self._clock.monotonic_ms()
        return due_ms - now_ms

    def stop(self) -> None:
        """Stop all timers."""
        for entry in (*self._entries.values(), *self._spare):
            if entry.timer is not None:
                entry.timer.cancel()
        self._entries.clear()
        self._spare.clear()
        self._deferred.clear()
        self._late.clear()
        self._has_lost = False


def _nobody(key: Key) -> bool:
    return False


def _nothing(key: Key) -> None:
    pass

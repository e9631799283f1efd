"""The turns of the loop in which the handlers serve JoinGroup and SyncGroup: as many in a turn as fit into a slice.

A turn of the loop serves every connection that has something, and all members of a group ask when its rebalance begins:
hundreds of requests would be one turn. Those beyond a slice wait in the order in which they came, as in Kafka's request
queue, where most of them would wait in the purgatory next anyway. What comes alone does not wait, and what goes from
frame to frame neither: a place in the queue would cost more.
"""

from __future__ import annotations

from collections import deque

from kafka_shim.errors import KafkaError
from kafka_shim.scheduler import Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.clock import Clock, Timer
    from kafka_shim.group.purgatory import DelayedResponse

# Requests per turn at most, also with a virtual clock, which stands still meanwhile.
MOST_PER_TURN = 128
# The delay after which a turn counts as over whose end found no memory. No turn takes as long.
LOST_MS = 100


class MemberTurns:
    """Owned by `ClassicRequests`. Event-loop thread only."""

    __slots__ = ("_clock", "_has_turn", "_is_over", "_lost_ms", "_slice", "_turn", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slice = Slice(clock, MOST_PER_TURN)
        # Whether a slice of this turn of the loop has begun, and whether it is over.
        self._has_turn = False
        self._is_over = False
        self._lost_ms = 0
        # The next turn of the loop, which ends this one.
        self._turn: Timer | None = None
        self._waiting: deque[tuple[DelayedResponse, Callable[..., None], tuple[Any, ...]]] = deque()

    def serve(self, delayed: DelayedResponse, work: Callable[..., None], *arguments: Any) -> None:
        """Call `work(delayed, *arguments)` in this turn or on a later one, unless the request is complete by then. A
        KafkaError completes the request. Any other error is raised: by this call, or to whom waits for the response."""
        if self._takes():
            self._work(delayed, work, arguments)
        else:
            self._waiting.append((delayed, work, arguments))

    def _takes(self) -> bool:
        """Count one request. Returns whether it is served in this turn of the loop, and not on a later one."""
        now_ms = self._clock.monotonic_ms()
        if not self._has_turn or now_ms >= self._lost_ms:
            self._begin(now_ms)
            self._is_over = bool(self._waiting)
        if self._is_over:
            return False
        self._is_over = self._slice.is_over()
        return True

    @staticmethod
    def _work(delayed: DelayedResponse, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            work(delayed, *arguments)
        except KafkaError as error:
            delayed.fail(error.code)

    def _begin(self, now_ms: int) -> None:
        """Begin a slice of this turn of the loop."""
        if self._turn is not None:
            self._turn.cancel()  # its end did not come in time
        self._turn = self._clock.call_later(0, self._next_turn)
        self._has_turn = True
        self._lost_ms = now_ms + LOST_MS
        self._slice.begin()

    def _next_turn(self) -> None:
        waiting = self._waiting
        self._is_over = self._has_turn = False
        self._turn = None
        if not waiting:
            return
        has_next = True
        try:
            self._begin(self._clock.monotonic_ms())
        except MemoryError:
            has_next = False  # all of them now: nobody else would serve them until another request comes
        while waiting and not (self._is_over and has_next):
            delayed, work, arguments = waiting.popleft()
            if delayed.outcome is not None:
                continue  # the broker stops, or the group is loaded again
            self._is_over = self._slice.is_over()
            try:
                self._work(delayed, work, arguments)
            except Exception as error:
                delayed.fail_unexpectedly(error)

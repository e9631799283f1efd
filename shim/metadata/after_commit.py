"""What follows a change of the metadata once the image has it: logs are made or deleted, coordinators hear of it.

Memory may end on the way, and the change stays: what is left is done later.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# How often a step is tried at once for which there is no memory.
STEP_TRIES = 3


class Rest:
    """What is left of the steps that a request takes itself, on several turns: `step` does all of it. Made before the
    commit, so that it can be left to `AfterCommit` without memory."""

    __slots__ = ("next", "step")

    def __init__(self, step: Callable[[], object]) -> None:
        self.step = step
        self.next: Rest | None = None


class AfterCommit:
    """The steps that are left, in order. A step may be called again after it failed half-way. Owned by the replayer.
    Event-loop thread only."""

    __slots__ = ("_is_running", "_left", "steps", "try_later")

    def __init__(self, try_later: Callable[[], None]) -> None:
        """`try_later` is called when a step found no memory, to have `run` called some time later."""
        self.try_later = try_later
        self._is_running = False
        self._left: Rest | None = None
        # A commit adds its steps by an assignment.
        self.steps: deque[Callable[[], object]] = deque()

    def leave(self, rest: Rest) -> None:
        """Have `rest` done later: its request found no memory. Also where it is not known whether it did commit."""
        rest.next, self._left = self._left, rest
        self.try_later()

    def run(self) -> None:
        """Do what is left. Raises MemoryError if it is done later, and else what a step raised, after the others."""
        if self._is_running:  # a step made a change itself: those of that come next
            return
        self._is_running = True
        error: Exception | None = None
        try:
            while self.steps or self._left is not None:
                try:
                    if self._left is not None:
                        self.steps.append(self._left.step)
                        self._left = self._left.next
                    self._try()
                except MemoryError:
                    self.try_later()
                    raise
                except Exception as err:
                    error = error or err
                    self.steps.popleft()
        finally:
            self._is_running = False
        if error is not None:
            raise error

    def _try(self) -> None:
        step = self.steps[0]
        for tries_left in range(STEP_TRIES - 1, -1, -1):
            try:
                step()
                break
            except MemoryError:
                if not tries_left:
                    raise
        del self.steps[0]

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


class AfterCommit:
    """The steps that are left, in order. A step may be called again after it failed half-way. Owned by the replayer.
    Event-loop thread only."""

    __slots__ = ("_is_running", "_later", "steps")

    def __init__(self, later: Callable[[], None]) -> None:
        """`later` is called when a step found no memory, to have `run` called some time later."""
        self._later = later
        self._is_running = False
        # A commit adds its steps by an assignment.
        self.steps: deque[Callable[[], object]] = deque()

    def run(self) -> None:
        """Do what is left. Raises MemoryError if it is done later, and else what a step raised, after the others."""
        if self._is_running:  # a step made a change itself: those of that come next
            return
        self._is_running = True
        error: Exception | None = None
        try:
            while self.steps:
                try:
                    self._try()
                except MemoryError:
                    self._later()
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

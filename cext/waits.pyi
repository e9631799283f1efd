"""The base of `waiters.Pause`: the awaitable in which the task of a request waits."""

from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, Self

class PauseBase:
    """The base of `waiters.Pause`: as much of a future as a task asks for. A future that finds no memory to have its
    task called has forgotten it, and the task can be neither woken nor cancelled any more. This one remembers it until
    the event loop has the call."""

    CANCELLED: type[BaseException]
    _asyncio_future_blocking: bool

    def __init__(self, loop: Any) -> None: ...
    def end(self, is_woken: bool) -> None:
        """Have the task go on, if there is memory for that. `is_woken` is what it gets, if nothing ended the pause
        before."""

    def go_on_now(self) -> None:
        """Take the task's next step, if the loop has no call for it. No other task may be running."""

    def __await__(self) -> Generator[Self, None, bool]: ...  # the pause itself
    def __iter__(self) -> Self: ...
    def __next__(self) -> Self: ...
    def get_loop(self) -> Any: ...
    def done(self) -> bool:
        """Whether the task goes on, or will without anything else."""

    def add_done_callback(self, call: Callable[[Self], object], *, context: Context) -> None: ...
    def cancel(self, msg: Any = None) -> bool: ...
    def result(self) -> bool:
        """Whether it was woken. Raises `CANCELLED`."""

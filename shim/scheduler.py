"""Work that is done later, again and again, or in slices: one way for every part of the broker (Kafka: KafkaScheduler).

What belongs to one request or one member waits elsewhere: `waiters.Waiter`, `group.timers`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from kafka_shim.clock import Clock, Timer


class Scheduler:
    """The tasks of one part of the broker, by name; a task takes the place of what has its name. Event-loop thread
    only. Runs on the broker's clock, so that a virtual one sees all of it; a task that raises is run again when it is
    due again, and its error goes to the loop."""

    __slots__ = ("_clock", "_tasks")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, Timer] = {}

    def every(self, name: str, interval_ms: float, action: Callable[[], object]) -> None:
        """Run `action` each time the interval has passed."""
        self.cancel(name)
        self._tasks[name] = self._clock.every(interval_ms, action)

    def after(self, name: str, delay_ms: float, action: Callable[..., object], *args: Any) -> None:
        """Run `action(*args)` once, when the delay has passed."""
        self.cancel(name)
        self._tasks[name] = self._clock.call_later(delay_ms, self._run, name, action, args)

    def _run(self, name: str, action: Callable[..., object], args: tuple[Any, ...]) -> None:
        del self._tasks[name]
        action(*args)

    def in_slices(self, name: str, slices: Iterator[object], pause_ms: float = 0) -> None:
        """Run an iterator to its end: a slice at once, each other one on a later turn of the loop, or after a pause
        that leaves the loop to others."""
        self.cancel(name)
        if next(slices, self) is not self:
            self.after(name, pause_ms, self.in_slices, name, slices, pause_ms)

    def is_scheduled(self, name: str) -> bool:
        """Whether this task is still to run."""
        return name in self._tasks

    def cancel(self, name: str) -> None:
        """Drop a task; none of that name is no error."""
        timer = self._tasks.pop(name, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Drop all."""
        for timer in self._tasks.values():
            timer.cancel()
        self._tasks.clear()

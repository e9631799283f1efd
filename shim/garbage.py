"""The garbage collector of a process that is a broker and nothing else: an object is looked at while it is young, and
what lives then is not looked at again (docs/adr/0048-garbage-collection.md).

CPython's own full collection looks at all that lives. With 5,000 connections, or the 60,000 logs of a retention check,
that holds the event loop for tens of milliseconds.
"""

from __future__ import annotations

import gc
import sys

from kafka_shim.scheduler import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock

# Objects of the youngest generation, and collections of it before one of the middle generation. What outlives that is
# frozen, so that the oldest stays empty: CPython would look at it only when a quarter as many objects had come as it
# held once, which after the start of very many is very many.
THRESHOLDS = (700, 5, 0)
# When so many objects have been frozen since the last look at all, the next is worth its time: a fifth of a second for
# each million.
LOOK_AFTER_OBJECTS = 1_000_000
LOOK_EVERY_MS = 60 * 60 * 1000
# From here on CPython collects in increments of its own, which thresholds of three generations do not fit.
COLLECTS_IN_INCREMENTS = sys.version_info >= (3, 14)


class Collector:
    """The process has one. Event-loop thread only, but `_freeze`, which runs where a collection does."""

    __slots__ = ("_counted", "_scheduler", "_thresholds")

    def __init__(self, clock: Clock) -> None:
        self._scheduler = Scheduler(clock)
        self._thresholds: tuple[int, int, int] | None = None
        # How many objects were frozen when all were last looked at.
        self._counted = 0

    def start(self) -> None:
        """Freeze what lives, and from now on what outlives a collection of the middle generation."""
        self._thresholds = gc.get_threshold()
        gc.freeze()
        if not COLLECTS_IN_INCREMENTS:
            gc.set_threshold(*THRESHOLDS)
            gc.callbacks.append(_freeze)
        self._counted = gc.get_freeze_count()
        self._scheduler.every("look at frozen objects", LOOK_EVERY_MS, self._look)

    def stop(self) -> None:
        """Leave the collector as it was found."""
        if self._thresholds is None:
            return
        self._scheduler.stop()
        if _freeze in gc.callbacks:
            gc.callbacks.remove(_freeze)
        gc.set_threshold(*self._thresholds)
        self._thresholds = None
        gc.unfreeze()

    def _look(self) -> None:
        """Look at all objects once more if very many were frozen: a cycle among them may have died since."""
        if gc.get_freeze_count() - self._counted < LOOK_AFTER_OBJECTS:
            return
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._counted = gc.get_freeze_count()


def _freeze(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()

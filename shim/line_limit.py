"""Lines of the log that clients can cause: as many in a time as a reader can use, and then how many more there were.

A dictionary attack, or a client that connects in a loop, must not fill a disk with what the log says of it.
"""

from __future__ import annotations

import logging

from kafka_shim.plurals import counted
from kafka_shim.scheduler import Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock

PERIOD_MS = 10_000
MAX_LINES = 30


class LineLimit:
    """The lines of one kind. Event-loop thread only."""

    __slots__ = (
        "_began_ms",
        "_clock",
        "_latest",
        "_left_out",
        "_level",
        "_lines",
        "_logger",
        "_period_ms",
        "_scheduler",
        "total",
    )

    def __init__(
        self, logger: logging.Logger, clock: Clock, *, level: int = logging.WARNING, period_ms: int = PERIOD_MS
    ) -> None:
        # Constant.
        self._logger = logger
        self._clock = clock
        self._level = level
        self._period_ms = period_ms
        self._scheduler = Scheduler(clock)
        # The current period: its begin, the lines written, the number of lines left out, and the latest of these.
        self._began_ms: float | None = None
        self._lines = 0
        self._left_out = 0
        self._latest = ""
        # Since the start: all, also those that were left out.
        self.total = 0

    def write(self, text: str, *values: object) -> None:
        """Log a line, or count it if this period has had its lines. The end of the period says how many it left
        out."""
        if self.has_room():
            self._logger.log(self._level, text, *values)
        else:
            self._latest = f"; the latest: {text % values}"

    def has_room(self, max_lines: int = MAX_LINES) -> bool:
        """Whether the caller may log one more line now. If not, it is counted."""
        self.total += 1
        now_ms = self._clock.monotonic_ms()
        if self._began_ms is None or now_ms - self._began_ms >= self._period_ms:
            self.close()
            self._began_ms = now_ms
            self._lines = 0
        self._lines += 1
        if self._lines <= max_lines:
            return True
        if not self._left_out:
            self._scheduler.after("report", self._began_ms + self._period_ms - now_ms, self.close)
        self._left_out += 1
        return False

    def close(self) -> None:
        """Say now how many lines were left out, if any were."""
        left_out, self._left_out = self._left_out, 0
        latest, self._latest = self._latest, ""
        self._scheduler.stop()
        if left_out:
            lines, were = counted(left_out, "further line"), "was" if left_out == 1 else "were"
            text = "%s like those before %s left out within %d s%s"
            self._logger.log(self._level, text, lines, were, self._period_ms // 1000, latest)

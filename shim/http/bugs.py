"""Bugs that requests show: each is logged with its traceback, but not more often than a reader can use."""

from __future__ import annotations

import logging
import threading
import time

logger = logging.getLogger(__name__)

MOST_TRACEBACKS = 3
PERIOD_S = 10.0


class Bugs:
    """The bugs of one server. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Since when, and how many there were.
        self._since_s = 0.0
        self._count = 0

    def report(self) -> None:
        """Log the exception that is being handled, or count it if there were many."""
        now_s = time.monotonic()
        left_out = 0
        with self._lock:
            if now_s - self._since_s >= PERIOD_S:
                left_out = max(0, self._count - MOST_TRACEBACKS)
                self._since_s, self._count = now_s, 0
            self._count += 1
            is_shown = self._count <= MOST_TRACEBACKS
        if is_shown:
            before = f"; {left_out} more before were left out" if left_out else ""
            logger.exception("a request to the HTTP listener failed%s", before)

"""Bugs that requests show: each is logged with its traceback, but not more often than a reader can use."""

from __future__ import annotations

import logging
import threading
import time

from kafka_shim.plurals import counted

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
        self.tell_left_out()
        with self._lock:
            if not self._count:
                self._since_s = time.monotonic()
            self._count += 1
            is_shown = self._count <= MOST_TRACEBACKS
        if is_shown:
            logger.exception("a request to the HTTP listener failed")

    def tell_left_out(self, *, is_end: bool = False) -> None:
        """Log how many were only counted, once their time is over or at the end."""
        with self._lock:
            if not is_end and time.monotonic() - self._since_s < PERIOD_S:
                return
            left_out, self._count = self._count - MOST_TRACEBACKS, 0
        if left_out > 0:
            were = "was" if left_out == 1 else "were"
            failures = counted(left_out, "further failure")
            logger.error("%s of requests to the HTTP listener %s left out", failures, were)

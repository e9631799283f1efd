"""Waits of tests, which end at a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from kafka_shim.embedded import Broker

PATIENCE_S = 60.0


def until(broker: Broker, condition: Callable[[], object]) -> None:
    """Wait for a condition on the broker's thread."""
    deadline = time.monotonic() + PATIENCE_S
    while not broker.call(condition):
        assert time.monotonic() < deadline
        time.sleep(0.001)

"""Waits of tests, which end at a deadline."""

from __future__ import annotations

from collections.abc import Callable

from kafka_shim.embedded import Broker
from kafka_shim.targets.waiting import PATIENCE_S, wait_until

__all__ = ["PATIENCE_S", "until"]


def until(broker: Broker, condition: Callable[[], object]) -> None:
    """Wait for a condition on the broker's thread."""
    wait_until(lambda: broker.call(condition), "a condition on the broker's thread")

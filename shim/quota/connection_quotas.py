"""How many connections an address may open per second (KIP-612; Kafka: ConnectionQuotas).

A connection over the quota is held without being served, then closed, so that its client cannot come back at once.
"""

from __future__ import annotations

from kafka_shim.quota.rate import UNLIMITED, Rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.clock import Clock

# Addresses that are measured at most. Beyond it those that were not used for the longest time are forgotten.
MOST_ADDRESSES = 10_000


class ConnectionQuotas:
    """The quotas of all addresses. Event-loop thread only."""

    def __init__(self, clock: Clock, window_count: int, window_s: int) -> None:
        self._clock = clock
        self._window_count = window_count
        self._window_ms = window_s * 1000
        # By address; None: all that have none of their own.
        self._bounds: dict[str | None, float] = {}
        self._meters: dict[str, Rate] = {}

    def set_quotas(self, bounds: Mapping[str | None, float]) -> None:
        """Replace all quotas, in connections per second."""
        self._bounds = dict(bounds)
        for address, meter in self._meters.items():
            # What counts an address without a quota is kept: the next quota counts its connections, too.
            meter.bound = self._bounds.get(address, self._bounds.get(None, UNLIMITED))

    def hold_ms(self, address: str) -> int:
        """Count a connection. Returns for how many milliseconds it is held before it is closed, at most one window; 0
        if it may be served."""
        bound = self._bounds.get(address, self._bounds.get(None))
        if bound is None:
            return 0
        meter = self._meters.pop(address, None)
        if meter is None:
            meter = Rate(bound, self._window_count, self._window_ms)
            if len(self._meters) >= MOST_ADDRESSES:
                del self._meters[next(iter(self._meters))]
        self._meters[address] = meter  # the last used is the last
        now_ms = self._clock.monotonic_ms()
        meter.record(1, now_ms)
        throttle_ms = min(meter.throttle_time_ms(now_ms), self._window_ms)
        if throttle_ms:
            meter.record(-1, now_ms)
        return throttle_ms

"""What all clients used of one resource, and the quotas on it (Kafka: ClientQuotaManager)."""

from __future__ import annotations

from kafka_shim.quota.entities import candidates, measured_as, otherwise_of
from kafka_shim.quota.rate import UNLIMITED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.clock import Clock
    from kafka_shim.quota.entities import Entity
    from kafka_shim.quota.rate import Rate, TokenBucket

    Meter = Rate | TokenBucket

# What was used is forgotten after an hour without use; it is looked for when this many meters are new.
UNUSED_MS = 3_600_000
LOOK_EVERY = 10_000
# A client that changes its id with every request costs bounded memory: of more meters than this the longest unused are
# forgotten, and ids that share a beginning this long share a meter.
MOST_METERS = 40_000
MOST_ID_CHARACTERS = 256


class ClientQuotaManager:
    """One resource: bytes produced, bytes fetched, time of request threads, or mutations of partitions. While anybody
    has a quota, all clients are measured: what a client used counts against the quota that it is given. Event-loop
    thread only.

    `meter` is the way to measure: `Rate`, or `TokenBucket` for mutations. `window_count` windows of `window_s` seconds
    are measured.
    """

    def __init__(self, clock: Clock, meter: type[Rate | TokenBucket], window_count: int, window_s: int) -> None:
        # --- fixed
        self._clock = clock
        self._meter = meter
        self._window_count = window_count
        self._window_s = window_s
        # --- changes with the quotas
        self._bounds: dict[Entity, float] = {}
        self._otherwise = otherwise_of(self._bounds)
        self._meters: dict[Entity, Meter] = {}
        self._look_at = LOOK_EVERY

    @property
    def is_enabled(self) -> bool:
        """Whether anybody has a quota."""
        return bool(self._bounds)

    def set_quotas(self, bounds: Mapping[Entity, float]) -> None:
        """Replace all quotas, per second. What was used until now counts against the new ones."""
        self._bounds = dict(bounds)
        self._otherwise = otherwise_of(self._bounds)
        for measured, meter in self._meters.items():
            bound = self._bound(measured)
            meter.bound = UNLIMITED if bound is None else bound

    def record(self, user: str, client_id: str, value: float) -> int:
        """Count a value that was used, or is negative to take it back. Returns for how many milliseconds the client is
        throttled."""
        meter = self.meter(user, client_id)
        if meter is None:
            return 0
        now_ms = self._clock.monotonic_ms()
        meter.record(value, now_ms)
        return meter.throttle_time_ms(now_ms)

    def most_in_window(self, user: str, client_id: str) -> float | None:
        """Returns the most that can be used at once and is not throttled for sure, or None without a quota. A fetch
        returns no more, because it would never be answered (ClientQuotaManager.maxValueInQuotaWindow)."""
        bound = self._bound(measured_as(self._bounds, self._otherwise, user, client_id))
        return None if bound is None else bound * (self._window_count - 1) * self._window_s

    def meter(self, user: str, client_id: str) -> Meter | None:
        """Returns what measures this client, or None where nobody has a quota."""
        if not self._bounds:
            return None
        measured = measured_as(self._bounds, self._otherwise, user, client_id)
        meter = self._meters.get(measured)
        if meter is not None:
            return meter
        bound = self._bound(measured)
        if bound is None:
            bound = UNLIMITED
        if len(measured[1] or "") > MOST_ID_CHARACTERS and measured not in self._bounds:
            return self._meter_of((measured[0], (measured[1] or "")[:MOST_ID_CHARACTERS]), bound)
        return self._meter_of(measured, bound)

    def _meter_of(self, measured: Entity, bound: float) -> Meter:
        meter = self._meters.get(measured)
        if meter is not None:
            return meter
        if len(self._meters) >= self._look_at:
            self._forget_unused()
        meter = self._meters[measured] = self._meter(bound, self._window_count, self._window_s * 1000)
        return meter

    def _bound(self, measured: Entity) -> float | None:
        for entity in candidates(measured):
            bound = self._bounds.get(entity)
            if bound is not None:
                return bound
        return None

    def _forget_unused(self) -> None:
        before_ms = self._clock.monotonic_ms() - UNUSED_MS
        for measured in [key for key, meter in self._meters.items() if meter.used_ms < before_ms]:
            del self._meters[measured]
        if len(self._meters) > MOST_METERS - LOOK_EVERY:
            oldest = sorted(self._meters, key=lambda one: self._meters[one].used_ms)
            for measured in oldest[: len(oldest) - (MOST_METERS - LOOK_EVERY)]:
                del self._meters[measured]
        self._look_at = len(self._meters) + LOOK_EVERY

"""What a quota measures: a rate over sampled windows, and a token bucket (Kafka: Rate, SampledStat, TokenBucket).

Times are milliseconds of a clock that does not go back. `bound` is the quota, per second.
"""

from __future__ import annotations

from math import floor, inf, isnan

# The bound of who has no quota (Java's Long.MAX_VALUE).
UNLIMITED = float(2**63 - 1)
# Throttle times are int32 in Kafka's responses.
MAX_THROTTLE_MS = 0x7FFFFFFF


class Rate:
    """A sum of values per second, over `window_count` windows of `window_ms`. One more window is kept, so that a sample
    that overlaps the measured time counts in full."""

    __slots__ = ("_current", "_samples", "_window_count", "_window_ms", "bound", "used_ms")

    def __init__(self, bound: float, window_count: int, window_ms: int) -> None:
        self.bound = bound
        self.used_ms = 0
        self._window_count = window_count
        self._window_ms = window_ms
        # Each sample is [start, time of the last record, sum].
        self._samples: list[list[float]] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value, which is negative to take one back."""
        self.used_ms = now_ms
        samples = self._samples
        if not samples:
            samples.append([now_ms, now_ms, 0.0])
        sample = samples[self._current]
        if now_ms - sample[0] >= self._window_ms:
            self._current = (self._current + 1) % (self._window_count + 1)
            if self._current == len(samples):
                samples.append([now_ms, now_ms, 0.0])
            sample = samples[self._current]
            sample[:] = now_ms, now_ms, 0.0
        sample[1] = now_ms
        sample[2] += value

    def per_second(self, now_ms: int) -> float:
        """Returns the rate of what was recorded in the windows up to now."""
        measured_ms = self.measured_ms(now_ms)
        return sum(sample[2] for sample in self._samples) * 1000 / measured_ms

    def measured_ms(self, now_ms: int) -> float:
        """Returns the length of the measured time: from the oldest sample on, and at least all windows but one, so that
        the first requests of a client are not taken for its rate."""
        oldest_ms: float = now_ms
        for sample in self._samples:
            if now_ms - sample[1] >= self._window_count * self._window_ms:
                sample[:] = now_ms, now_ms, 0.0
            elif sample[0] < oldest_ms:
                oldest_ms = sample[0]
        elapsed_ms = now_ms - oldest_ms
        missing = self._window_count - 1 - int(elapsed_ms // self._window_ms)
        if missing > 0:
            elapsed_ms += missing * self._window_ms
        return max(elapsed_ms, 1)

    def throttle_time_ms(self, now_ms: int) -> int:
        """Returns how long nothing may be recorded until the rate is back at the bound; 0 if it does not exceed it
        (QuotaUtils.throttleTime)."""
        rate = self.per_second(now_ms)
        if not rate > self.bound:
            return 0
        return _rounded_ms(_quotient(rate - self.bound, self.bound) * self.measured_ms(now_ms))


class TokenBucket:
    """Tokens that come at the rate `bound`, up to what comes in all windows together. It is full at first. It may go
    below zero: then nothing may be taken until it is back at zero."""

    __slots__ = ("_burst_seconds", "_tokens", "bound", "used_ms")

    def __init__(self, bound: float, window_count: int, window_ms: int) -> None:
        self.bound = bound
        self._burst_seconds = window_count * window_ms / 1000
        self._tokens = bound * self._burst_seconds
        self.used_ms = 0

    def tokens(self, now_ms: int) -> float:
        """Returns the tokens there are now."""
        came = self.bound * (now_ms - self.used_ms) / 1000
        self._tokens = min(self.bound * self._burst_seconds, self._tokens + came)
        self.used_ms = now_ms
        return self._tokens

    def record(self, count: float, now_ms: int) -> None:
        """Take tokens, also those that are not there yet."""
        self._tokens = min(self.bound * self._burst_seconds, self.tokens(now_ms) - count)

    def throttle_time_ms(self, now_ms: int) -> int:
        """Returns how long it takes until the bucket is back at zero; 0 if it is not below
        (ControllerMutationQuotaManager.throttleTimeMs)."""
        tokens = self.tokens(now_ms)
        return _rounded_ms(_quotient(-tokens, self.bound) * 1000) if tokens < 0 else 0


def _quotient(excess: float, bound: float) -> float:
    """Divide as Java does: by zero there is no end."""
    return excess / bound if bound else inf


def _rounded_ms(throttle_ms: float) -> int:
    """Round to what a response can hold. A bound that is NaN or tiny gives NaN or more than that."""
    if isnan(throttle_ms):
        return 0
    return floor(max(0.0, min(throttle_ms, MAX_THROTTLE_MS)) + 0.5)

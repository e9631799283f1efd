"""A limit on bytes per second for work in a separate thread."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock

CHECK_BYTES = 64 * 1024


class Throttle:
    """`take` waits until the average since the start is at most `bytes_per_second`. `stop` ends every wait."""

    def __init__(self, bytes_per_second: float, clock: Clock) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._started_ms = clock.monotonic_ms()
        self._taken = 0
        self._unchecked = 0
        self._pause = clock.pause()

    def take(self, size_bytes: int) -> None:
        """Count `size_bytes`, and wait if the rate is too high."""
        self._unchecked += size_bytes
        if self._unchecked < CHECK_BYTES:
            return
        self._taken += self._unchecked
        self._unchecked = 0
        due_ms = self._taken * 1000 / self._rate
        wait_ms = due_ms - (self._clock.monotonic_ms() - self._started_ms)
        if wait_ms > 1:
            self._pause.wait(wait_ms)

    def stop(self) -> None:
        """End all current and future waits."""
        self._pause.stop()

"""The clocks of the machine, in whole milliseconds or microseconds, without an object for the nanoseconds, and the
timers of an event loop: each request reads or sets them a few times. Only `shim/clock.py` uses this."""

from collections.abc import Callable
from typing import Any

class MachineTime:
    """The base of `clock.RealClock`."""

    # An event loop, or None, and what returns the running one.
    _loop: Any
    _running_loop: Callable[[], Any]

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Any:
        """`Clock.call_later`, with the timers of `_loop`, or of the running loop."""

    def soon(self) -> Callable[[Callable[[], None]], object]:
        """`Clock.soon`."""

    def now_ms(self) -> int:
        """Returns milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Returns milliseconds since an arbitrary start, which is that of `time.monotonic`."""

    def monotonic_us(self) -> int:
        """Returns microseconds since that start."""

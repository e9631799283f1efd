"""The clocks of the machine, in whole milliseconds or microseconds, without an object for the nanoseconds: each request
reads them a few times. Only `shim/clock.py` uses this."""

class MachineTime:
    """The base of `clock.RealClock`."""

    def now_ms(self) -> int:
        """Returns milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> int:
        """Returns milliseconds since an arbitrary start, which is that of `time.monotonic`."""

    def monotonic_us(self) -> int:
        """Returns microseconds since that start."""

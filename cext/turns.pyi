"""The base of `scheduler.Slice`: whether a slice of a long task has held the loop long enough."""

from typing import Any

class SliceBase:
    """The base of `scheduler.Slice`, which explains the fields."""

    _clock: Any
    _ends_us: int
    _left: int
    _most: int

    def is_over(self) -> bool:
        """Count one part. Returns whether the event loop should have its turn now."""

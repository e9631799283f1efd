"""Slices of long tasks, as far as each part of a task asks for them."""

from typing import Any

class SliceEnd:
    """The base of `scheduler.Slice`, which explains the fields."""

    _clock: Any
    _ends_us: int
    _left: int
    _most: int

    def is_over(self) -> bool:
        """Count one part. Returns whether the event loop should have its turn now."""

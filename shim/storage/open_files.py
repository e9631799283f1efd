"""A bound on open segment files: with thousands of partitions the oldest are closed, and opened again at their next
use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shim.storage.segments import Segment

DEFAULT_LIMIT = 1024


class OpenFiles:
    """The segments that hold a file descriptor, in the order they were opened. Event-loop thread only."""

    __slots__ = ("_segments", "limit")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._segments: dict[Segment, None] = {}

    def __len__(self) -> int:
        return len(self._segments)

    def opened(self, segment: Segment) -> None:
        """`segment` has a descriptor now; the oldest gives its own up when there are too many."""
        self._segments[segment] = None
        if len(self._segments) > self.limit:
            next(iter(self._segments)).close_file()

    def closed(self, segment: Segment) -> None:
        """`segment` has none any more."""
        self._segments.pop(segment, None)

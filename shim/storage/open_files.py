"""A bound on open segment files: with thousands of partitions the oldest are closed, and opened again at their next
use."""

from __future__ import annotations

import errno
import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.segments import Segment

MOST_FILES = 4096
# The others are for connections.
SHARE = 4
# The process lacks something, the disk is sound: only the request under way fails.
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class OpenFiles:
    """The segments that hold a file descriptor, in the order they were opened. Event-loop thread only."""

    __slots__ = ("_segments", "limit")

    def __init__(self, limit: int = 0) -> None:
        """`limit` 0: a share of what the process may have."""
        self.limit = limit or min(MOST_FILES, max(16, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // SHARE))
        self._segments: dict[Segment, None] = {}

    def __len__(self) -> int:
        return len(self._segments)

    def open(self, path: str, flags: int, segment: Segment) -> int:
        """A descriptor for `segment`; the oldest segment gives its own up when there are too many. When the process is
        out of descriptors (connections took them), half of the segments give theirs up first. Raises OSError."""
        try:
            fd = os.open(path, flags, 0o644)
        except OSError as err:
            if err.errno not in OUT_OF_RESOURCES or not self._segments:
                raise
            self._close_oldest((len(self._segments) + 1) // 2)
            fd = os.open(path, flags, 0o644)
        self._segments[segment] = None
        if len(self._segments) > self.limit:
            self._close_oldest(1)
        return fd

    def closed(self, segment: Segment) -> None:
        """`segment` has none any more."""
        self._segments.pop(segment, None)

    def _close_oldest(self, count: int) -> None:
        for segment in list(self._segments)[:count]:
            segment.close_file()

"""A range of a segment's .log file to be sent in a Fetch response (Kafka: a slice of FileRecords)."""

from __future__ import annotations

import errno

from kafka_shim.storage import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.segments import Segment


class FileRecords:
    """Stored batches as a position and a size in the file, for responses that are too large to copy into memory. The
    bytes stay readable as long as this object exists, even after retention, compaction or the deletion of the topic.

    `read` copies the bytes. A transport that uses sendfile takes `segment.fd` and `position` instead."""

    __slots__ = ("position", "segment", "size_bytes")

    def __init__(self, segment: Segment, position: int, size_bytes: int) -> None:
        self.segment = segment
        self.position = position
        self.size_bytes = size_bytes
        segment.retain()

    def __del__(self) -> None:
        self.segment.release()

    def read(self, start: int, size_bytes: int) -> bytes:
        """Return `size_bytes` bytes from `start`, relative to the start of the range. Raises OSError."""
        segment, position = self.segment, self.position + start
        data = segment.read(position, size_bytes)
        if len(data) != size_bytes:
            raise OSError(errno.EIO, f"only {len(data)} bytes at position {position}", segment.path(names.LOG))
        return data

"""A part of a segment's .log file that is to be sent (Kafka: a slice of FileRecords)."""

from __future__ import annotations

import errno

from kafka_shim.storage import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.segments import Segment


class FileRecords:
    """Stored batches by their place in the file, for answers that are too large to hold. The bytes can be read as long
    as this object lives, whatever becomes of the segment: a roll, retention, compaction, the deletion of its topic.

    `read` copies; a transport that lets the kernel send the file takes `segment.fd` and `position` instead."""

    __slots__ = ("position", "segment", "size_bytes")

    def __init__(self, segment: Segment, position: int, size_bytes: int) -> None:
        self.segment = segment
        self.position = position
        self.size_bytes = size_bytes
        segment.retain()

    def __del__(self) -> None:
        self.segment.release()

    def read(self, start: int, size_bytes: int) -> bytes:
        """`size_bytes` of them from `start`, counted from their own beginning. Raises OSError."""
        segment, position = self.segment, self.position + start
        data = segment.read(position, size_bytes)
        if len(data) != size_bytes:
            raise OSError(errno.EIO, f"only {len(data)} bytes at position {position}", segment.path(names.LOG))
        return data

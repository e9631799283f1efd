"""An answer on its way to a client that may be slow (Kafka: NetworkSend, MultiRecordsSend), and what all of them may
hold.

An answer may show far more stored bytes than the broker should hold for it: 50 MB for each consumer by default. Only
as many are read as the connection has room for; the others stay in the file. docs/adr/0040-answers-under-way.md has the
figures.
"""

from __future__ import annotations

from kafka_shim.storage.file_records import FileRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What one connection may read ahead while all of them together hold less than the limit, and what it always may: a
# client makes progress however many others do not read.
LARGE_CHUNK_BYTES = 2 * 1024 * 1024
SMALL_CHUNK_BYTES = 64 * 1024
SEND_LIMIT_BYTES = 32 * 1024 * 1024


class SendMemory:
    """The account of bytes that were handed to the transports of one server and that their clients did not take yet.
    Event-loop thread only."""

    __slots__ = ("limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = SEND_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    @property
    def chunk_bytes(self) -> int:
        """How much a connection may read of its answer now."""
        return LARGE_CHUNK_BYTES if self.used_bytes + LARGE_CHUNK_BYTES <= self.limit_bytes else SMALL_CHUNK_BYTES


class NetworkSend:
    """What of one answer was not handed to its transport yet: buffers, and parts of files."""

    __slots__ = ("_next", "_parts", "_start")

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts
        # The next part, and how much of it was taken.
        self._next = 0
        self._start = 0

    @property
    def is_done(self) -> bool:
        """Whether all of it was taken."""
        return self._next == len(self._parts)

    def take(self, chunk_bytes: int) -> list[Any]:
        """The next buffers, about `chunk_bytes`: parts of files are cut to it, buffers are not. Raises OSError."""
        taken: list[Any] = []
        left_bytes = chunk_bytes
        parts = self._parts
        while left_bytes > 0 and self._next < len(parts):
            part = parts[self._next]
            if part.__class__ is FileRecords:
                size_bytes = min(part.size_bytes - self._start, left_bytes)
                taken.append(part.read(self._start, size_bytes))
                self._start += size_bytes
                left_bytes -= size_bytes
                if self._start < part.size_bytes:
                    break
                self._start = 0
            else:
                taken.append(part)
                left_bytes -= len(part)
            # What is taken is let go: the transport alone holds it.
            parts[self._next] = None
            self._next += 1
        return taken


def shows_files(parts: list[Any]) -> bool:
    """Whether an answer has parts that must be read before they can be sent."""
    return any(part.__class__ is FileRecords for part in parts)

"""The sending of one response to a client that may be slow (Kafka: NetworkSend, MultiRecordsSend), and the memory limit
of all such sends.

A response may refer to far more stored bytes than the broker should hold in memory: 50 MB per consumer by default. The
broker reads only as many as the connection has room for; the rest stays in the file. docs/adr/0040-answers-under-way.md
has the figures.
"""

from __future__ import annotations

from kafka_shim.storage.file_records import FileRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The first is what one connection may read ahead while all of them together stay below the limit. The second is what a
# connection may always read, so that a client makes progress however many others do not read.
LARGE_CHUNK_BYTES = 2 * 1024 * 1024
SMALL_CHUNK_BYTES = 64 * 1024
SEND_LIMIT_BYTES = 32 * 1024 * 1024


class SendMemory:
    """Counts the bytes that were passed to the transports of one server and that clients did not receive yet.
    Event-loop thread only."""

    __slots__ = ("limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = SEND_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    @property
    def chunk_bytes(self) -> int:
        """The number of bytes that a connection may read of its response now."""
        return LARGE_CHUNK_BYTES if self.used_bytes + LARGE_CHUNK_BYTES <= self.limit_bytes else SMALL_CHUNK_BYTES


class NetworkSend:
    """The part of one response that was not passed to its transport yet: buffers and parts of files."""

    __slots__ = ("_next", "_parts", "_start")

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts
        # The index of the next part, and the number of its bytes that were taken.
        self._next = 0
        self._start = 0

    @property
    def is_done(self) -> bool:
        """Whether everything was taken."""
        return self._next == len(self._parts)

    def take(self, chunk_bytes: int) -> list[Any]:
        """Returns the next buffers, about `chunk_bytes` in all: parts of files are cut to that size, buffers are not.
        Raises OSError."""
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
            # Drop the reference, so that only the transport holds the buffer.
            parts[self._next] = None
            self._next += 1
        return taken


def shows_files(parts: list[Any]) -> bool:
    """Returns whether a response has parts that must be read from files."""
    return any(part.__class__ is FileRecords for part in parts)

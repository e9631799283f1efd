"""The sending of one response to a client that may be slow (Kafka: NetworkSend, MultiRecordsSend), and the memory limit
of all such sends.

A response may refer to far more stored bytes than the broker should hold in memory: 50 MB per consumer by default. The
broker reads only as many as the connection has room for; the rest stays in the file. docs/adr/0040-answers-under-way.md
has the figures. On a connection without TLS the kernel sends the file's pages itself (docs/adr/0044-sendfile.md).
"""

from __future__ import annotations

import errno
import os

from kafka_shim.storage.file_records import FileRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The first is what one connection may read ahead while all of them together stay below the limit. The second is what a
# connection may always read, so that a client makes progress however many others do not read.
LARGE_CHUNK_BYTES = 2 * 1024 * 1024
SMALL_CHUNK_BYTES = 64 * 1024
SEND_LIMIT_BYTES = 32 * 1024 * 1024
# The size of the piece that the transport gets when the socket is full: it tells when that is sent, and there is room.
FULL_SOCKET_BYTES = 16 * 1024
# The most that a thread reads ahead from the disk at a time: more than a turn sends, because a hand-over costs more.
AHEAD_BYTES = 2 * 1024 * 1024

HAS_SENDFILE = hasattr(os, "sendfile")
# A file system whose files the kernel cannot send: some of 9p and FUSE. Java then copies too (FileChannel.transferTo).
UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


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

    __slots__ = ("_next", "_parts", "_start", "_warm_bytes", "must_copy")

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts
        # The index of the next part, and the number of its bytes that were taken.
        self._next = 0
        self._start = 0
        # How many bytes behind `_start` were read ahead: they are sent without another look.
        self._warm_bytes = 0
        # Whether the file system of the parts has no sendfile.
        self.must_copy = False

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
                self._warm_bytes = max(self._warm_bytes - size_bytes, 0)
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

    def take_buffers(self) -> list[Any]:
        """Returns the buffers in front of the next part of a file."""
        parts = self._parts
        taken: list[Any] = []
        while self._next < len(parts) and parts[self._next].__class__ is not FileRecords:
            taken.append(parts[self._next])
            parts[self._next] = None
            self._next += 1
        return taken

    def cold_range(self, limit_bytes: int) -> tuple[int, int, int] | None:
        """Returns (descriptor, position, size) of what must be read from the disk before the next `limit_bytes` can be
        sent without blocking: more than these, which are sent without another look then. None if the next part is no
        part of a file, is in the page cache, or was read ahead. Raises OSError."""
        part = self._parts[self._next]
        if self._warm_bytes or part.__class__ is not FileRecords:
            return None
        left_bytes = part.size_bytes - self._start
        if not part.is_cold(self._start, min(left_bytes, limit_bytes)):
            return None
        self._warm_bytes = min(left_bytes, AHEAD_BYTES)
        return part.range_of(self._start, self._warm_bytes)

    def send_file(self, socket_fd: int, limit_bytes: int) -> int:
        """Send at most `limit_bytes` of the next part, which is of a file, with sendfile. Returns how many bytes the
        socket took, 0 if it is full or if the rest must be copied. Raises OSError."""
        part = self._parts[self._next]
        try:
            sent_bytes: int = part.send(socket_fd, self._start, min(part.size_bytes - self._start, limit_bytes))
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            self.must_copy = True
            return 0
        self._start += sent_bytes
        self._warm_bytes = max(self._warm_bytes - sent_bytes, 0)
        if self._start == part.size_bytes:
            self._start = 0
            self._parts[self._next] = None
            self._next += 1
        return sent_bytes


def shows_files(parts: list[Any]) -> bool:
    """Returns whether a response has parts that must be read from files."""
    return any(part.__class__ is FileRecords for part in parts)

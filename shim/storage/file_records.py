"""A range of a segment's .log file to be sent in a Fetch response (Kafka: a slice of FileRecords)."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from kafka_shim.storage import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.segments import Segment

# The distance of the places that `is_cold` looks at.
PROBE_BYTES = 512 * 1024
# What `read_ahead` asks for at once: the kernel takes no more of one advice than a disk reads ahead, 128 KB by default.
READ_AHEAD_BYTES = 128 * 1024

_probe = bytearray(1)


def read_ahead(fd: int, position: int, size_bytes: int) -> None:
    """Have the kernel read a part of a file into its page cache, and wait until it has. Runs in a worker thread.
    Nothing is copied: `posix_fadvise` names what will be needed, in pieces, and reading a byte of each waits for its
    piece. A descriptor that was closed or used again meanwhile does no harm. The sender meets an I/O error again."""
    end = position + size_bytes
    byte = bytearray(1)
    with suppress(OSError):
        for at in range(position, end, READ_AHEAD_BYTES):
            os.posix_fadvise(fd, at, min(READ_AHEAD_BYTES, end - at), os.POSIX_FADV_WILLNEED)
        for at in (*range(position, end, READ_AHEAD_BYTES), end - 1):
            os.preadv(fd, (byte,), at)


class FileRecords:
    """Stored batches as a position and a size in the file, for responses that are too large to copy into memory. The
    bytes stay readable as long as this object exists, even after retention, compaction or the deletion of the topic.

    `read` copies the bytes; `send` has the kernel move them to a socket."""

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

    def is_cold(self, start: int, size_bytes: int) -> bool:
        """Return whether some of `size_bytes` bytes from `start` would have to be read from the disk: a few places are
        looked at. False where the file system cannot say so. Raises OSError.

        A look makes the kernel begin to read the page, so a quick disk may have it before the look is answered."""
        if not hasattr(os, "RWF_NOWAIT"):
            return False
        fd, first = self.segment.fd, self.position + start
        last = first + size_bytes - 1
        for position in (*range(first, last, PROBE_BYTES), last):
            try:
                os.preadv(fd, (_probe,), position, os.RWF_NOWAIT)
            except BlockingIOError:
                return True
            except OSError as error:
                if error.errno in {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}:
                    return False
                raise
        return False

    def range_of(self, start: int, size_bytes: int) -> tuple[int, int, int]:
        """Return (descriptor, position, size) for `read_ahead`. Raises OSError."""
        return self.segment.fd, self.position + start, size_bytes

    def send(self, socket_fd: int, start: int, size_bytes: int) -> int:
        """Send up to `size_bytes` bytes from `start` to a non-blocking socket. Return how many were taken, 0 if it is
        full. Raises OSError: ConnectionError if the client is gone."""
        segment, position = self.segment, self.position + start
        try:
            sent_bytes = os.sendfile(socket_fd, segment.fd, position, size_bytes)
        except BlockingIOError:
            return 0
        if not sent_bytes:
            raise OSError(errno.EIO, f"the file ends before position {position}", segment.path(names.LOG))
        return sent_bytes

"""What fsync has to be for a write to survive a power cut, on each system (Java: FileChannel.force)."""

from __future__ import annotations

import errno
import fcntl
import os

# A file system that cannot be told to empty the disk's cache: a network's, FAT's.
_UNSUPPORTED = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)


def fsync(fd: int) -> None:
    """Wait until what was written to a file is on the disk. On macOS `os.fsync` leaves it in the disk's own cache, and
    F_FULLFSYNC empties that. Raises OSError."""
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(fd, full)
        except OSError as err:
            if err.errno not in _UNSUPPORTED:
                raise
        else:
            return
    os.fsync(fd)

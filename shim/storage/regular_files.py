"""Opens the files of a data directory, which are regular files: a device or a pipe in the place of one is refused.

A pipe blocks whoever opens it, and /dev/zero has no end.
"""

from __future__ import annotations

import errno
import os
import stat


def open_regular(path: str, flags: int) -> int:
    """Open a file, which `flags` may create, and return its descriptor. Raises OSError, which names the file."""
    # Who else may write is for the umask to say, as in Java.
    # O_NONBLOCK: the open of a pipe waits for its other end. On a regular file it has no effect.
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        is_regular = stat.S_ISREG(os.fstat(fd).st_mode)
    except BaseException:  # MemoryError too
        os.close(fd)
        raise
    if not is_regular:
        os.close(fd)
        raise not_regular(path)
    return fd


def read_file(path: str) -> bytes:
    """Return what a file contains. Raises OSError, which names the file."""
    return read_and_close(open_regular(path, os.O_RDONLY))


def read_and_close(fd: int) -> bytes:
    """Return what a file contains from its position on. Closes it in any case, also if there is no memory for a file
    object of Python, which does not close a descriptor that it could not take over. Raises OSError."""
    try:
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def not_regular(path: str) -> OSError:
    """Return what is raised for something else in the place of a file."""
    return OSError(errno.EINVAL, "this is not a regular file, restore it from a backup or remove it", path)

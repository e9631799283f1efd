"""Files that are on no disk and have no name (Linux: memfd_create)."""

from __future__ import annotations

import errno
import os

# Kernels before 3.17 and sandboxes do not have the call, and filters of system calls (seccomp) refuse it.
REFUSALS = frozenset({errno.ENOSYS, errno.EPERM, errno.EACCES})


def memory_file(name: str) -> int | None:
    """Return the descriptor of a new one, which child processes do not inherit, or None where there are none. `name` is
    shown in /proc. Raises OSError without a free descriptor or memory."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        return os.memfd_create(name, os.MFD_CLOEXEC)
    except OSError as err:
        if err.errno in REFUSALS:
            return None
        raise

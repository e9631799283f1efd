"""A process that has no descriptor left: by its real limit, or in a function that is replaced."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path


def no_descriptor_left(*_: object, **__: object) -> None:
    """In the place of a function that opens a file."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@contextlib.contextmanager
def none_left(spare: int = 0) -> Iterator[None]:
    """Inside, the process may open `spare` files, and then gets EMFILE."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    # A file in a cycle that an earlier test left would be closed inside, whenever the collector comes to it.
    is_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[0], highest + 1 + spare), limit[1]))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(spare):
            os.close(taken.pop())
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        if is_enabled:
            gc.enable()

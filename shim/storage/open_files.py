"""The budget of files that partitions may keep open, derived from the process limit (RLIMIT_NOFILE).

A segment in use holds a descriptor. An index in use holds a mapping, which needs no descriptor but counts too, because
the system also limits mappings. Above the budget the oldest holders are closed; their next use opens them again."""

from __future__ import annotations

import errno
import os
import resource
from itertools import islice

from kafka_shim.cext.segment import Mapping
from kafka_shim.storage.regular_files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Holder(Protocol):
        """An object that holds a descriptor or a mapping."""

        def make_room(self) -> None:
            """Close it; the next use opens it again, and raises the error of a close that failed."""


# More would only use kernel memory, because reopening a file takes microseconds. Linux allows 65,530 mappings.
MOST_FILES = 16_384
# Partitions get one half (1/SHARE) of the limit; the rest is for connections.
SHARE = 2
# Descriptors reserved for everything else: listeners, checkpoints, indexes being stored, directories being read, module
# imports, and the threads that sync, compact and remove files.
SPARE = 32
FEWEST_CONNECTIONS = 8
# macOS: the most files that a process may open where its hard limit is infinite (sys/syslimits.h).
OPEN_MAX = 10_240
# Errors that mean the process lacks a resource and the disk is intact: only the current request fails.
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
OUT_OF_RESOURCES = (*OUT_OF_DESCRIPTORS, errno.ENOMEM)


def out_of_memory() -> OSError:
    """What the system would have said of a MemoryError."""
    return OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def raise_limit() -> int:
    """Raise the limit of open files (RLIMIT_NOFILE) as far as it goes; returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS reports no hard limit, and allows OPEN_MAX.
    for wanted in (hard, OPEN_MAX):
        if _finite(wanted) <= _finite(soft):
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        return _finite(wanted)
    return _finite(soft)


def limit_of_process() -> int:
    """Return the current limit of open files."""
    return _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _finite(limit: int) -> int:
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit


def most_partition_files(limit: int) -> int:
    """Return how many files partitions may keep open if the process may open `limit` files."""
    return max(16, min(MOST_FILES, (limit - SPARE) // SHARE))


def open_descriptors() -> int:
    """Return how many descriptors the process has open, or 0 if the system does not report it."""
    for directory in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(directory)) - 1
        except FileNotFoundError:
            continue
    return 0


class OpenFiles:
    """The holders of descriptors and mappings, oldest first. Event-loop thread only."""

    __slots__ = ("_holders", "descriptors", "limit")

    def __init__(self, limit: int = 0) -> None:
        """`limit` 0 means the partitions' share of the process limit."""
        self.limit = limit or most_partition_files(limit_of_process())
        # How many of the holders have a descriptor, not a mapping.
        self.descriptors = 0
        self._holders: dict[Holder, bool] = {}

    def __len__(self) -> int:
        return len(self._holders)

    @property
    def unclaimed(self) -> int:
        """How many more descriptors partitions may open."""
        return max(0, self.limit - self.descriptors)

    def open(self, path: str, flags: int, holder: Holder) -> int:
        """Open a file and return its descriptor, which `holder` keeps until it calls `closed`. Raises OSError."""
        fd = self.open_briefly(path, flags)
        self._holders[holder] = True
        self.descriptors += 1
        if len(self._holders) > self.limit:
            self._close_oldest(1)
        return fd

    def map(self, path: str, size_bytes: int, holder: Holder) -> Mapping:
        """Map the first `size_bytes` of a file. `holder` keeps the mapping until it calls `closed`. Raises OSError."""
        fd = self.open_briefly(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            mapping = Mapping(fd, 0, size_bytes)
        except OSError as err:
            if err.errno not in OUT_OF_RESOURCES:
                raise
            self._close_oldest(len(self._holders) // 2)
            mapping = Mapping(fd, 0, size_bytes)
        finally:
            os.close(fd)
        self._holders[holder] = False
        if len(self._holders) > self.limit:
            self._close_oldest(1)
        return mapping

    def open_briefly(self, path: str, flags: int) -> int:
        """Open a file and return its descriptor. The caller closes it or registers a holder. If the process lacks
        descriptors or memory, half of the holders are closed first and the open is tried again. Raises OSError."""
        try:
            return open_regular(path, flags)
        except OSError as err:
            if err.errno not in OUT_OF_RESOURCES or len(self._holders) < 2:
                raise
            self._close_oldest(len(self._holders) // 2)
            return open_regular(path, flags)

    def keep(self, holder: Holder) -> None:
        """Make `holder` the newest, because it is used for a while (a walk over its batches). The newest holder is
        never closed to make room."""
        kind = self._holders.pop(holder, None)
        if kind is not None:
            self._holders[holder] = kind

    def closed(self, holder: Holder) -> None:
        """Unregister `holder` after it closed its descriptor or mapping."""
        if self._holders.pop(holder, False):
            self.descriptors -= 1

    def _close_oldest(self, count: int) -> None:
        # A deleted segment that an answer under way still reads keeps its file: it does not count.
        holders = self._holders
        wanted, stay = len(holders) - count, 0
        newest = next(reversed(holders), None)
        while len(holders) > wanted:
            some = list(islice(holders, stay, stay + count))  # not all: each open above the budget closes one
            if not some:
                return
            for holder in some:
                if holder is newest or len(holders) <= wanted:
                    return
                holder.make_room()
                stay += holder in holders

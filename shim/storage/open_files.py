"""The budget of a broker's files: what partitions may hold open, derived from the limit of the process.

A segment that is read or written holds a descriptor, an index that is searched a mapping (which needs none, but counts:
the system bounds mappings too). Beyond the budget the oldest are closed, and opened again at their next use."""

from __future__ import annotations

import errno
import os
import resource

from kafka_shim.cext.segment import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Holder(Protocol):
        """What holds a descriptor or a mapping."""

        def close_file(self) -> None:
            """Give it back; the next use opens it again."""


# More would only cost kernel memory: opening a file again takes microseconds. Linux allows 65,530 mappings.
MOST_FILES = 16_384
# A share of the limit; the rest is for connections.
SHARE = 2
# Descriptors that neither partitions nor connections count: listeners, checkpoints, indexes being stored, directories
# being read, modules being imported, and the threads that sync, compact and remove files.
SPARE = 32
FEWEST_CONNECTIONS = 8
# The process lacks something, the disk is sound: only the request under way fails.
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def raise_limit() -> int:
    """Raise the limit of open files (RLIMIT_NOFILE) to the hard limit; returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS allows less than it says
            return _finite(soft)
    return _finite(hard)


def limit_of_process() -> int:
    """The limit of open files in force."""
    return _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _finite(limit: int) -> int:
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit


def most_partition_files(limit: int) -> int:
    """How many files partitions may hold, of a process that may have `limit`."""
    return max(16, min(MOST_FILES, (limit - SPARE) // SHARE))


def open_descriptors() -> int:
    """How many descriptors the process has now; 0 when the system does not tell."""
    for directory in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(directory)) - 1
        except FileNotFoundError:
            continue
    return 0


class OpenFiles:
    """The holders of a descriptor or a mapping, in the order they got it. Event-loop thread only."""

    __slots__ = ("_holders", "descriptors", "limit")

    def __init__(self, limit: int = 0) -> None:
        """`limit` 0: the share of partitions in what the process may have."""
        self.limit = limit or most_partition_files(limit_of_process())
        # How many of the holders have a descriptor, not a mapping.
        self.descriptors = 0
        self._holders: dict[Holder, bool] = {}

    def __len__(self) -> int:
        return len(self._holders)

    @property
    def unclaimed(self) -> int:
        """How many descriptors partitions may still take."""
        return max(0, self.limit - self.descriptors)

    def open(self, path: str, flags: int, holder: Holder) -> int:
        """A descriptor that `holder` keeps until its `close_file`. Raises OSError."""
        fd = self.open_briefly(path, flags)
        self._holders[holder] = True
        self.descriptors += 1
        if len(self._holders) > self.limit:
            self._close_oldest(1)
        return fd

    def map(self, path: str, size_bytes: int, holder: Holder) -> Mapping:
        """The first `size_bytes` of a file, which `holder` keeps until its `close_file`. Raises OSError."""
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
        """A descriptor that the caller closes at once. A process that has none left gets those of half of the holders
        back first. Raises OSError."""
        try:
            return os.open(path, flags, 0o644)
        except OSError as err:
            if err.errno not in OUT_OF_RESOURCES or len(self._holders) < 2:
                raise
            self._close_oldest(len(self._holders) // 2)
            return os.open(path, flags, 0o644)

    def keep(self, holder: Holder) -> None:
        """`holder` is used for a while (a walk over its batches): it becomes the newest, which is never closed to make
        room."""
        kind = self._holders.pop(holder, None)
        if kind is not None:
            self._holders[holder] = kind

    def closed(self, holder: Holder) -> None:
        """`holder` has given its own back."""
        if self._holders.pop(holder, False):
            self.descriptors -= 1

    def _close_oldest(self, count: int) -> None:
        for holder in list(self._holders)[: min(count, len(self._holders) - 1)]:
            holder.close_file()

"""The sparse indexes of one segment: offset -> position, timestamp -> offset (Kafka: OffsetIndex, TimeIndex).

New entries are collected in memory. They are written to the file when the segment is rolled or closed, or in chunks of
`WRITE_CHUNK_BYTES`. So an append needs no extra write; after a crash the entries are rebuilt from the log anyway."""

from __future__ import annotations

import errno
import os
from bisect import bisect_left
from contextlib import suppress
from struct import Struct
from struct import error as StructError

from kafka_shim.cext.segment import IndexBase, Mapping, lookup_offset, lookup_time
from kafka_shim.storage.checkpoint import replace_file
from kafka_shim.storage.open_files import OpenFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

OFFSET_ENTRY = Struct(">ii")  # offset relative to the segment's base, position in the .log file
TIME_ENTRY = Struct(">qi")  # timestamp, relative offset of the batch that has it
WRITE_CHUNK_BYTES = 16 * 1024
MAX_RELATIVE_OFFSET = 0x7FFFFFFF


class IndexFile(IndexBase):
    """Entries of a fixed size: the first `stored_bytes` are in the file, which is mapped for a search; the tail is in
    memory."""

    __slots__ = ("_files", "_map", "file_bytes", "path")
    entry: Struct

    def __init__(self, path: str, files: OpenFiles | None = None) -> None:
        """`files` is the broker's budget of open files, which counts the mapping; None for a tool that reads one
        file."""
        self.path = path
        self._files = files or OpenFiles(1)
        self.tail = bytearray()
        self.stored_bytes = 0
        # The size of the file, preallocation included; -1: there is no file.
        self.file_bytes = -1
        self._map: Mapping | None = None

    @classmethod
    def empty(cls, path: str, files: OpenFiles) -> Self:
        """Return an index without entries. The first `store` truncates an existing file."""
        index = cls(path, files)
        with suppress(FileNotFoundError):
            index.file_bytes = os.stat(path).st_size
        return index

    def _attach(self) -> bool:
        """Treat the whole file as entries. Returns False if there is no file."""
        try:
            size_bytes = os.stat(self.path).st_size
        except FileNotFoundError:
            return False
        self.reset()
        self.file_bytes = size_bytes
        self.stored_bytes = size_bytes - size_bytes % self.entry.size
        return True

    @property
    def count(self) -> int:
        """The number of entries, in the file and in memory."""
        return (self.stored_bytes + len(self.tail)) // self.entry.size

    @property
    def is_cut(self) -> bool:
        """Whether the file ended inside an entry when it was loaded."""
        return self.file_bytes > 0 and self.file_bytes % self.entry.size > 0

    def at(self, number: int) -> tuple[int, ...]:
        """Return the fields of entry `number`. Raises OSError."""
        position = number * self.entry.size
        if position >= self.stored_bytes:
            return self.entry.unpack_from(self.tail, position - self.stored_bytes)
        mapped = self._map
        if mapped is not None and position < len(mapped):
            return self.entry.unpack_from(mapped, position)
        return self._read(position)

    def _read(self, position: int) -> tuple[int, ...]:
        # A single entry, which retention reads from every segment, is not worth a mapping.
        fd = self._files.open_briefly(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self.entry.unpack(os.pread(fd, self.entry.size, position))
        except StructError as err:
            raise OSError(errno.EIO, f"{self.path} is shorter than it was") from err
        finally:
            os.close(fd)

    def stored(self) -> Mapping | bytes:
        """Return the entries in the file, mapped. Raises OSError."""
        if not self.stored_bytes:
            return b""
        if self._map is None or len(self._map) < self.stored_bytes:
            self.close_file()
            self._map = self._files.map(self.path, self.stored_bytes, self)
        return self._map

    def hold(self, first: int, second: int) -> None:
        """As `add`, in memory whatever the number of entries: the file is there only when it has all of them."""
        self.tail += self.entry.pack(first, second)

    def add(self, first: int, second: int) -> None:
        """Append an entry. The caller keeps the entries in order."""
        self.tail += self.entry.pack(first, second)
        if len(self.tail) >= WRITE_CHUNK_BYTES:
            self.store()

    def store(self) -> None:
        """Write the tail to the file and truncate the file after it (preallocation, old entries). Creates the file.
        After an OSError the tail stays in memory."""
        end_bytes = self.stored_bytes + len(self.tail)
        if not self.tail and self.file_bytes == end_bytes:
            return
        fd = self._files.open_briefly(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
        try:
            self._write_tail(fd, end_bytes)
        finally:
            os.close(fd)
        self.stored_bytes = self.file_bytes = end_bytes
        self.tail = bytearray()

    def _write_tail(self, fd: int, end_bytes: int) -> None:
        if self.tail and os.pwrite(fd, self.tail, self.stored_bytes) != len(self.tail):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        if self.file_bytes > self.stored_bytes:
            os.ftruncate(fd, end_bytes)

    def replace(self) -> None:
        """As `store`, for an index that is in memory as a whole: its file is written whole or not at all."""
        replace_file(self.path, self.tail, sync=False)
        self.stored_bytes = self.file_bytes = len(self.tail)
        self.tail = bytearray()

    def first_where(self, is_beyond: Callable[[tuple[int, ...]], bool]) -> int:
        """Return the number of the first entry for which `is_beyond` is True, or `count`. Uses bisection, so it must be
        True for all later entries too."""
        self.stored()  # many entries are looked at
        return bisect_left(range(self.count), True, key=lambda number: is_beyond(self.at(number)))

    def reset(self) -> None:
        """Remove all entries. The next `store` truncates an existing file."""
        self.tail = bytearray()
        self.stored_bytes = 0
        self.close_file()

    def close_file(self) -> None:
        """Release the mapping; the next search maps the file again."""
        if self._map is not None:
            self._map = None
            self._files.closed(self)

    make_room = close_file


class OffsetIndex(IndexFile):
    """Offset -> position of the batch that ends at it."""

    __slots__ = ()
    entry = OFFSET_ENTRY

    def load(self) -> bool:
        """Load the file and find the end of its entries. Returns False if there is no file or if its size is not a
        multiple of the entry size. A segment takes the whole entries that there are: the fewer, the longer a search.
        After a crash recovery rebuilds a file of such a size, and any above the recovery point; one that was cut
        between two entries below it looks whole.

        Kafka preallocates the index of the active segment with zeros, and after a crash they follow the entries. The
        entries end at the first zero entry."""
        if not self._attach():
            return False
        if not self.stored_bytes or self.at(self.count - 1) > (0, 0):
            return self.stored_bytes == self.file_bytes
        self.stored_bytes = self.first_where(_is_preallocated) * self.entry.size
        return True

    def lookup(self, relative_offset: int) -> tuple[int, int]:
        """Return (relative offset, position) of the last entry at or below `relative_offset`, or (0, 0)."""
        if self.tail and relative_offset >= self.entry.unpack_from(self.tail)[0]:
            return lookup_offset(self.tail, len(self.tail), relative_offset)
        if not self.stored_bytes:
            return 0, 0
        return lookup_offset(self.stored(), self.stored_bytes, relative_offset)

    def first_from_position(self, position: int) -> tuple[int, int] | None:
        """Return the first entry whose position in the .log file is >= `position`, or None."""
        number = self.first_where(lambda entry: entry[1] >= position)
        return (self.at(number)[0], self.at(number)[1]) if number < self.count else None


class TimeIndex(IndexFile):
    """Timestamp -> offset of the batch with it. Both ascend."""

    __slots__ = ()
    entry = TIME_ENTRY

    def load(self) -> bool:
        """Load the file and find the end of its entries. Returns False if there is no file."""
        if not self._attach():
            return False
        # Zero entries at the end are preallocation.
        if not self.stored_bytes or not _is_preallocated(self.at(self.count - 1)):
            return True
        self.stored_bytes = self.first_where(_is_preallocated) * self.entry.size
        return True

    @property
    def last(self) -> tuple[int, int]:
        """(timestamp, relative offset) of the last entry, or (-1, 0) if there is none."""
        tail = self.tail
        if tail:
            return TIME_ENTRY.unpack_from(tail, len(tail) - TIME_ENTRY.size)
        return self.at(self.count - 1) if self.stored_bytes else (-1, 0)  # type: ignore[return-value]

    def maybe_add(self, timestamp_ms: int, relative_offset: int) -> None:
        """Append an entry if its timestamp is greater than the last one. An offset too far above the base offset
        (`Segment.rebuild`) counts as the highest that fits: searches begin there, and retention has the timestamp."""
        if timestamp_ms > self.last[0]:
            self.add(timestamp_ms, min(relative_offset, MAX_RELATIVE_OFFSET))

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """Return (timestamp, relative offset) of the last entry at or before `timestamp_ms`, or (-1, 0)."""
        if self.tail and timestamp_ms >= self.entry.unpack_from(self.tail)[0]:
            return lookup_time(self.tail, len(self.tail), timestamp_ms)
        if not self.stored_bytes:
            return -1, 0
        return lookup_time(self.stored(), self.stored_bytes, timestamp_ms)


def _is_preallocated(entry: tuple[int, ...]) -> bool:
    return entry == (0, 0)

"""The aborted transactions of one segment, in the order of their markers: `.txnindex` (Kafka: TransactionIndex,
AbortedTxn).

An entry has 34 bytes: version int16 (0), then as int64 the producer id, first offset, last offset (of the marker) and
last stable offset. The last offsets ascend; the first offsets need not."""

from __future__ import annotations

import errno
import os
from array import array
from bisect import bisect_left
from contextlib import suppress
from struct import Struct

from kafka_shim.storage.checkpoint import replace_file
from kafka_shim.storage.open_files import OpenFiles
from kafka_shim.storage.regular_files import read_and_close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

# (producer id, first offset, offset of the marker, last stable offset)
Aborted = tuple[int, int, int, int]
ENTRY = Struct(">hqqqq")
VERSION = 0


class TxnIndex:
    """The transaction index of one segment. It is read completely at its first use. Each append writes to the file. The
    file does not exist before the first entry."""

    __slots__ = ("_files", "_is_cut", "first_offsets", "last_offsets", "last_stable_offsets", "path", "producer_ids")

    def __init__(self, path: str, files: OpenFiles | None = None) -> None:
        """`files` is the broker's budget of open files; None for a tool that reads one file."""
        self.path = path
        self._files = files or OpenFiles(1)
        self.producer_ids = array("q")
        self.first_offsets = array("q")
        self.last_offsets = array("q")
        self.last_stable_offsets = array("q")
        # Whether the file that was read ended inside an entry, or had none.
        self._is_cut = False
        self._load()

    def _load(self) -> None:
        try:
            fd = self._files.open_briefly(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        self._fill(read_and_close(fd))

    def _fill(self, content: bytes) -> None:
        whole = len(content) - len(content) % ENTRY.size
        self._is_cut = not content or whole < len(content)
        for version, producer_id, first, last, stable in ENTRY.iter_unpack(content[:whole]):
            if version != VERSION:
                raise OSError(errno.EIO, f"aborted transaction of version {version}, expected {VERSION}", self.path)
            self._add(producer_id, first, last, stable)

    @classmethod
    def rebuilt(cls, path: str, files: OpenFiles, aborted: Iterable[Aborted], *, sync: bool) -> Self:
        """Return the index that has these entries alone, in place of what the file had. A failure or a kill leaves the
        old file: a part of the entries would look like all of them. Raises OSError."""
        content = b"".join(ENTRY.pack(VERSION, *entry) for entry in aborted)
        try:
            before = read_and_close(files.open_briefly(path, os.O_RDONLY | os.O_CLOEXEC))
        except FileNotFoundError:
            before = b""
        else:
            if not content:
                os.unlink(path)
        if content and content != before:  # most are as they were, and a full disk has no room for another
            replace_file(path, content, sync=sync)
        return cls(path, files)

    def _add(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        self.producer_ids.append(producer_id)
        self.first_offsets.append(first_offset)
        self.last_offsets.append(last_offset)
        self.last_stable_offsets.append(last_stable_offset)

    def __len__(self) -> int:
        return len(self.producer_ids)

    def is_whole(self, base_offset: int, end_offset: int) -> bool:
        """Whether the file, as it was read, can be that of the segment from `base_offset` to `end_offset` (Kafka:
        sanityCheck, which looks at `base_offset` alone). A file with less than was written ends anywhere, or has
        zeros."""
        if self._is_cut:
            return False
        before = base_offset - 1
        for first, last in zip(self.first_offsets, self.last_offsets, strict=True):
            if not before < last < end_offset or first >= last:
                return False
            before = last
        return True

    def append(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        """Add the transaction that the marker at `last_offset` aborted. Raises ValueError if `last_offset` does not
        ascend, and OSError; then nothing is added."""
        if self.last_offsets and self.last_offsets[-1] >= last_offset:
            raise ValueError(f"{self.path}: {last_offset} is not above the last offset {self.last_offsets[-1]}")
        entry = ENTRY.pack(VERSION, producer_id, first_offset, last_offset, last_stable_offset)
        position = len(self) * ENTRY.size
        self._write(self._files.open_briefly(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC), entry, position)
        self._add(producer_id, first_offset, last_offset, last_stable_offset)

    def _write(self, fd: int, entry: bytes, position: int) -> None:
        written = 0
        try:
            written = os.pwrite(fd, entry, position)
        finally:
            os.close(fd)
            if written != len(entry):
                self._cut_part(position)
        if written != len(entry):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)

    def _cut_part(self, position: int) -> None:
        with suppress(OSError):  # a start rebuilds a file that ends inside an entry, or has none
            self._cut(position)

    def take_back(self) -> None:
        """Remove the last entry, whose marker was not written. Raises OSError."""
        self._cut((len(self) - 1) * ENTRY.size)
        for column in (self.producer_ids, self.first_offsets, self.last_offsets, self.last_stable_offsets):
            column.pop()

    def _cut(self, position: int) -> None:
        if position:
            os.truncate(self.path, position)
        else:
            os.unlink(self.path)

    def collect(self, fetch_offset: int, end_offset: int) -> tuple[list[tuple[int, int]], bool]:
        """Return (producer_id, first_offset) of the aborted transactions that overlap [fetch_offset, end_offset), and
        whether the list is complete, so that later segments need not be read."""
        found = []
        for at in range(bisect_left(self.last_offsets, fetch_offset), len(self)):
            if self.first_offsets[at] < end_offset:
                found.append((self.producer_ids[at], self.first_offsets[at]))
            if self.last_stable_offsets[at] >= end_offset:
                return found, True
        return found, False

    def entries(self) -> list[tuple[int, int, int, int]]:
        """Return (producer_id, first_offset, last_offset, last_stable_offset) of all entries, in order."""
        columns = (self.producer_ids, self.first_offsets, self.last_offsets, self.last_stable_offsets)
        return list(zip(*columns, strict=True))

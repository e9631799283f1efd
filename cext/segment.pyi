"""One .log file and its indexes: append, read, search, walk.

This module handles only bytes and positions. The caller handles file names, rolling and fsync.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from typing_extensions import Buffer

from kafka_shim.cext.batch import Batch, Verdict

def append(fd: int, buffers: Sequence[Buffer]) -> int:
    """Write all buffers to a file opened with O_APPEND. Continues after short writes and signals.

    Returns the number of bytes written. After an OSError the file may contain a part of the buffers, and the caller
    must truncate it.
    """

class IndexBase:
    """The base of `storage.index.IndexFile`: the end of an index, where entries are added."""

    tail: bytearray
    """The newest entries, which are not in the file."""
    stored_bytes: int
    """The size of the entries in the file."""

class SegmentBase:
    """The base of `storage.segments.Segment`: the end of a segment, where batches are appended."""

    base_offset: int
    size_bytes: int
    bytes_since_index: int
    first_timestamp_ms: int | None
    """The timestamp of the first batch. It and `max_timestamp_ms` are None until they are read from the files, and -1
    without a batch."""
    max_timestamp_ms: int | None
    max_timestamp_offset: int
    _fd: int
    _limits_of: object
    _most_bytes: int
    _interval_bytes: int
    _longest_wait_ms: int
    _most_index_bytes: int
    _is_index_full: bool
    _offset_index: Any
    _time_index: Any

    def append_plain(
        self,
        put: Callable[[int, Sequence[Buffer]], int],
        batch: Buffer,
        size_bytes: int,
        last_offset: int,
        max_timestamp_ms: int,
        config: object,
    ) -> bool:
        """Append a batch if there is nothing else to do. Returns False, and has done nothing, if there may be:
        `Segment.is_full`, rolling and `Segment.append` decide then. `shim/tests/storage/test_plain_batches.py` compares
        the files of the two ways. Nothing else is to do if

        - the segment has a batch, is open, and the times of its first batch and of its latest are known;
        - it has room: in bytes, in the relative offsets of its indexes, in their entries, in the age of its records.

        `_set_limits` notes the limits in `_most_bytes` and the next fields where they are not those of `config`. Where
        an index entry is due, the `tail` of both indexes gets it. If they are not in memory, or a tail is to be stored
        then, `_load_indexes` is called before the write and `_index` behind it. `put` writes, as `append` does; the
        caller names it so that a test can let the write fail. If it raises, `_cut_back` is called with the old size and
        the state in memory is unchanged."""

    def _cut_back(self, position: int) -> None:
        """Truncate the file to `position`. Abstract: a segment defines it."""

    def _set_limits(self, config: Any) -> None:
        """Make the limits those of `config`. Abstract. Raises OSError."""

    def _load_indexes(self) -> None:
        """Have the indexes in memory. Abstract. Raises OSError."""

    def _index(self, last_offset: int, position: int) -> None:
        """Index the batch at `position`, which is written. Abstract."""

def read(fd: int, position: int, size_bytes: int) -> bytes:
    """Return `size_bytes` bytes from `position`, fewer only at the end of the file. Does not move the file position.
    Raises OSError."""

class Mapping(Buffer):
    """A read-only memory mapping of a part of a file. Unlike an `mmap.mmap` it keeps no descriptor.

    It exists as long as there is a reference to it or its bytes. `position` must be a multiple of the page size. Raises
    OSError (ENOMEM: the process has too many mappings)."""

    def __init__(self, fd: int, position: int, size_bytes: int) -> None: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def find_batch(fd: int, position: int, end_position: int, offset: int) -> tuple[int, int, int, int] | None:
    """Return (position, size_bytes, base_offset, last_offset) of the first batch whose last offset is >= `offset`.

    Reads only headers, forward from `position`, which must be the start of a batch. Returns None if there is no such
    batch below `end_position` or if the bytes are not batches.
    """

def lookup_offset(index: Buffer, size_bytes: int, relative_offset: int) -> tuple[int, int]:
    """Return (relative offset, position) of the last entry at or below `relative_offset`, or (0, 0).

    An entry has 8 bytes: relative offset, position. `size_bytes` is the used size; an incomplete entry is ignored.
    """

def lookup_time(index: Buffer, size_bytes: int, timestamp_ms: int) -> tuple[int, int]:
    """Return (timestamp, relative offset) of the last entry at or before `timestamp_ms`, or (-1, 0).

    An entry has 12 bytes: timestamp, relative offset.
    """

class Walk(Iterator[Batch]):
    """Iterates over the batches of a file range until the first invalid one, and checks their CRCs with `check_crc`.
    Recovery uses it.

    The `position` of a batch is its position in the file. Memory is bounded whatever the file contains. It must not be
    used by two threads at once, and the caller keeps the file open. Afterwards the attributes tell how the walk ended.
    """

    position: int
    """How far the bytes are good: where the last good batch ends."""
    verdict: Verdict
    """OK when the range ends exactly there, else what is wrong with the next batch."""
    next_offset: int
    """After the last good batch; the given one before the first."""

    def __init__(
        self, fd: int, position: int, end_position: int, check_crc: bool = True, next_offset: int = 0
    ) -> None: ...
    def __iter__(self) -> Walk: ...
    def __next__(self) -> Batch: ...

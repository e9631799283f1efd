"""One .log file and its indexes: append, read, search, walk.

Bytes and positions only; names, rolling and fsync are the caller's.
"""

from collections.abc import Iterator, Sequence

from typing_extensions import Buffer

from kafka_shim.cext.batch import Batch, Verdict

def append(fd: int, buffers: Sequence[Buffer]) -> int:
    """Write all buffers where the file stands (open it with O_APPEND), going on after short writes and signals.

    Answers the bytes written. OSError as the system says it; then part of the buffers may be in the file and the caller
    must cut it back.
    """

def read(fd: int, position: int, size_bytes: int) -> bytes:
    """Up to `size_bytes` from `position`; less only at the end of the file. The file's own position does not move."""

class Mapping(Buffer):
    """Bytes of a file, read-only, in memory that the page cache holds. Unlike an `mmap.mmap` it keeps no descriptor.

    It lives as long as anything refers to it or its bytes. `position` is a multiple of the page size. Raises OSError
    (ENOMEM: the process has too many mappings)."""

    def __init__(self, fd: int, position: int, size_bytes: int) -> None: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def find_batch(fd: int, position: int, end_position: int, offset: int) -> tuple[int, int, int, int] | None:
    """(position, size_bytes, base_offset, last_offset) of the first batch whose last offset is >= `offset`.

    Reads headers only, forward from `position`, which must be the start of a batch. None: there is none below
    `end_position`, or the bytes are not batches.
    """

def whole_batches(fd: int, position: int, end_position: int) -> int:
    """Where the last complete batch of [position, end_position) ends. Reads headers only, forward from `position`,
    which must be the start of a batch."""

def lookup_offset(index: Buffer, size_bytes: int, relative_offset: int) -> tuple[int, int]:
    """(relative offset, position) of the last entry at or below, (0, 0) when there is none.

    An entry is 8 bytes: relative offset, position. `size_bytes` is the used part; what is no whole entry is ignored.
    """

def lookup_time(index: Buffer, size_bytes: int, timestamp_ms: int) -> tuple[int, int]:
    """(timestamp, relative offset) of the last entry at or before, (-1, 0) when there is none.

    An entry is 12 bytes: timestamp, relative offset.
    """

class Walk(Iterator[Batch]):
    """The batches of a file range one after the other, CRC checked, until the first bad one: what recovery does.

    Batches come with `position` in the file. Memory is bounded whatever the file holds. Not for two threads at once;
    the caller keeps the file open. The attributes tell afterwards how it ended.
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

"""The records inside a RecordBatch v2: walk, check, search; and, from `kafka_shim.cext.builder`, build."""

from collections.abc import Iterator
from typing import TypeAlias

from typing_extensions import Buffer

from kafka_shim.cext.batch import Batch
from kafka_shim.cext.builder import build as build
from kafka_shim.cext.builder import build_marker as build_marker
from kafka_shim.cext.builder import parse_marker as parse_marker
from kafka_shim.cext.builder import recompress as recompress

Header: TypeAlias = tuple[str, bytes | None]

class Record:
    """One record, copied from its batch. Header keys are decoded with surrogateescape, so that no byte is lost."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]

class RecordsSummary:
    """A summary of all records of a batch, for the broker's validation."""

    record_count: int
    max_timestamp: int
    """-1 when no record has one. The batch's for LogAppendTime."""
    offset_of_max_timestamp: int
    """Absolute, of the first record with it; -1 when no record has one."""
    min_timestamp: int
    """The least one that is not -1 (which means none); -1 when there is none."""
    null_key_count: int
    first_null_key: int
    """Index of the first record without key; -1: all have one."""
    uncompressed_bytes: int
    """Of the records when decompressed."""

def iterate(
    buffer: Buffer, start: int = 0, end: int | None = None, check_crc: bool = False, limit_bytes: int = ...
) -> Iterator[Record]:
    """Iterate over the records of all batches in [start, end), decompressed, with control records.

    The iterator holds `buffer`. It raises BatchError for invalid bytes, possibly after it returned records.
    `limit_bytes` limits the size of one decompressed batch. The default is the maximum of the format, for bytes that a
    broker has accepted.
    """

def validate(buffer: Buffer, batch: Batch, limit_bytes: int = ...) -> RecordsSummary:
    """Validate every record of a client's batch, which `scan` found in `buffer`. Decompresses it if necessary.

    Offset deltas must be 0, 1, 2, ..., their number must equal the record count and the offset range, and every length
    must be inside its bounds. Otherwise raises BatchError. `limit_bytes` limits the decompressed size. Keeps none of
    the records' content.
    """

def decompressed_bytes(buffer: Buffer) -> int:
    """About how many bytes the records of the batch at the start of `buffer` decompress to, by their framing
    (`compression.expected_bytes`). 0 for a batch that is not compressed, and for what is no batch."""

def scan_plain(
    buffer: Buffer, limit_bytes: int, needs_keys: bool, now_ms: int, before_limit_ms: int, after_limit_ms: int
) -> Batch | None:
    """Check a producer's batch in one pass. Returns its header if it is plain and valid, as nearly every batch is.

    None refuses nothing: `scan`, `validate` and the caller's rules then say what the batch is. They are the only place
    of each rule; `shim/tests/storage/test_plain_batches.py` compares the two ways. Plain is a batch

    - that fills the buffer, and has at most `limit_bytes` and 1 MB: larger ones are checked without the GIL;
    - whose CRC, header and records are well formed, with the offsets 0, 1, 2 ...: compaction alone leaves gaps;
    - that is not compressed, has CreateTime, and is no control batch;
    - that has a sequence number if it has a producer id;
    - without null keys, if `needs_keys`;
    - whose header has the greatest timestamp of its records, so that it is stored as it came;
    - with no timestamp below 0, which means none, nor outside of `before_limit_ms` and `after_limit_ms` from `now_ms`.
    """

def find_timestamp(
    buffer: Buffer, batch: Batch, timestamp_ms: int, from_offset: int = 0, limit_bytes: int = ...
) -> tuple[int, int] | None:
    """Return (offset, timestamp) of the first record at or after `from_offset` whose timestamp is >= `timestamp_ms`, or
    None.

    With `batch.max_timestamp` it finds the record with the maximum timestamp. Works on compacted batches.
    """

"""The per-record work of compaction: map each key to its last offset, then select and copy the records that are
kept."""

from typing_extensions import Buffer

from kafka_shim.cext.batch import Batch

class OffsetMap:
    """Key digest (SipHash, 128 bits, keyed by `secret`) -> the greatest offset of the key.

    The table grows up to `limit_bytes`; then the map is full. It must not be used by two threads at once.
    """

    count: int
    capacity: int
    """Keys that fit when it has grown to its limit."""
    latest_offset: int
    """Up to here the log was put in; -1: nothing was. Each key that is added raises it; after what has
    no keys the caller does."""

    def __init__(self, limit_bytes: int, load_factor: float, secret: bytes) -> None: ...
    def find(self, key: bytes) -> int:
        """Return the offset of a key, or -1 if the map does not have it."""

def index_records(offsets: OffsetMap, records: Buffer, batch: Batch, from_offset: int) -> bool:
    """Add the keys of the decompressed records of `batch` at or after `from_offset`. Returns False if the map is full;
    the remaining keys are not added. Raises BatchError for invalid bytes.
    """

class Survey:
    """Which records of a batch would be kept."""

    read_count: int
    kept_count: int
    max_timestamp: int
    """Of the kept records; -1 when none has one."""
    has_tombstones: bool
    """Whether a kept record has no value."""

def survey(offsets: OffsetMap, records: Buffer, batch: Batch, keep_tombstones: bool) -> Survey:
    """Survey the decompressed records of a data batch. A record is kept if its offset is above the map's latest offset,
    or if it is the last one of its key. A record without a value is kept as the last one only with `keep_tombstones`.
    Raises BatchError for invalid bytes.
    """

def copy_kept(
    offsets: OffsetMap | None, records: Buffer, batch: Batch, keep_tombstones: bool, base_timestamp: int
) -> bytearray:
    """Copy the records that are kept by the rule of `survey` (all if `offsets` is None), encoded relative to
    `base_timestamp`. Offset deltas do not change. Raises BatchError for invalid bytes.
    """

def seal(
    records: Buffer, batch: Batch, attributes: int, base_timestamp: int, max_timestamp: int, record_count: int
) -> bytearray:
    """Return a whole batch of these (compressed) records. The other fields, such as the last offset, are those of
    `batch`."""

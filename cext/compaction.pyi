"""What compaction does with every record: remember the last offset of each key, find and copy what stays."""

from typing_extensions import Buffer

from kafka_shim.cext.batch import Batch

class OffsetMap:
    """Key digest (SipHash, 128 bits, keyed by `secret`) -> the greatest offset of the key. Memory is bounded.

    The table grows as it fills, up to `limit_bytes`; then it is full. Not used by two threads at once.
    """

    count: int
    capacity: int
    """Keys that fit when it has grown to its limit."""
    latest_offset: int
    """Up to here the log was put in; -1: nothing was. Set by the caller."""

    def __init__(self, limit_bytes: int, load_factor: float, secret: bytes) -> None: ...
    def find(self, key: bytes) -> int:
        """The offset of a key, -1 when it is not here."""

def index_records(offsets: OffsetMap, records: Buffer, batch: Batch, from_offset: int) -> bool:
    """Put in the keys of the decompressed records of `batch` at or after `from_offset`. False: the map is full,
    and what was not put in stays out. BatchError for bad bytes.
    """

class Survey:
    """What would stay of a batch."""

    read_count: int
    kept_count: int
    max_timestamp: int
    """Of the kept records; -1 when none has one."""
    has_tombstones: bool
    """Whether a kept record has no value."""

def survey(offsets: OffsetMap, records: Buffer, batch: Batch, keep_tombstones: bool) -> Survey:
    """Judge the decompressed records of a data batch: a record stays when it is behind the map's latest offset, or
    is the last one of its key and, without a value, `keep_tombstones`. BatchError for bad bytes.
    """

def copy_kept(
    offsets: OffsetMap | None, records: Buffer, batch: Batch, keep_tombstones: bool, base_timestamp: int
) -> bytearray:
    """The records that stay, by the same rule (no map: all), as a batch's records with this base timestamp. Offset
    deltas stay as they are. BatchError for bad bytes.
    """

def seal(
    records: Buffer, batch: Batch, attributes: int, base_timestamp: int, max_timestamp: int, record_count: int
) -> bytearray:
    """A whole batch of these (compressed) records with the other facts, the last offset among them, of `batch`."""

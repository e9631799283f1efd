"""RecordBatch v2 headers: `scan` validates and reads them, `stamp` writes the fields that the broker sets."""

from enum import IntEnum

from typing_extensions import Buffer

HEADER_SIZE: int
"""Bytes of a batch before its first record (61)."""

class Verdict(IntEnum):
    """What is wrong with the bytes of a batch. `kafka_shim.errors` maps it to Kafka's error code."""

    OK = 0
    SHORT = 1
    """Fewer bytes than a header; also an empty buffer."""
    BAD_LENGTH = 2
    """The length field is negative or less than a header needs."""
    TRUNCATED = 3
    """The length field says more bytes than there are."""
    BAD_MAGIC = 4
    """Magic 0 or 1: the formats before Kafka 0.11."""
    UNKNOWN_MAGIC = 5
    """Magic neither 0, 1 nor 2."""
    BAD_CRC = 6
    BAD_OFFSET_RANGE = 7
    """Last offset delta negative."""
    BAD_COUNT = 8
    """Record count negative or more than the offsets of the batch; from `validate`: 0, or not exactly their number."""
    BAD_CODEC = 9
    """Compression type 5 to 7."""
    BAD_COMPRESSED_DATA = 10
    """The codec refuses the data."""
    TOO_LARGE = 11
    """Decompresses to more than the limit."""
    BAD_RECORD_LENGTH = 12
    """A record's length is negative, beyond the batch, or not what its fields add up to."""
    BAD_VARINT = 13
    """A number inside a record is cut off or over-long."""
    BAD_FIELD_LENGTH = 14
    """A key or value is longer than its record."""
    BAD_HEADERS = 15
    """A header count or header length is negative or beyond the record."""
    BAD_OFFSET_DELTA = 16
    """Offset deltas are not 0, 1, 2, ... (from `validate`)."""
    TRAILING_BYTES = 17
    """Bytes remain after the last record."""
    OUT_OF_ORDER = 18
    """A batch starts below the end of the one before (from `segment.Walk`)."""

class BatchError(Exception):
    """Bytes that are not a valid batch.

    `position` is the start of the batch. `record_index` is the index of the invalid record, -1 for the batch itself.
    """

    verdict: Verdict
    position: int
    record_index: int
    def __init__(self, verdict: Verdict | int, position: int = 0, record_index: int = -1) -> None: ...

class Batch:
    """The fields of one batch header. It has numbers only, so it stays valid independently of the buffer.

    Created by `scan`; read-only.
    """

    position: int
    """Where it starts in the buffer (or file, from `segment.Walk`)."""
    base_offset: int
    size_bytes: int
    """Of the whole batch, header included."""
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """Of the first record; the delete horizon when `has_delete_horizon`."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def compression(self) -> int: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def is_log_append_time(self) -> bool: ...
    @property
    def has_delete_horizon(self) -> bool: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def last_sequence(self) -> int:
        """Wraps from 2**31 - 1 to 0; -1 without a sequence."""
    @property
    def end_position(self) -> int:
        """`position + size_bytes`."""

def scan(buffer: Buffer, start: int = 0, end: int | None = None, check_crc: bool = True) -> Batch:
    """Return the first batch in [start, end), and ignore the bytes after it. Raises BatchError if there is none or it
    is invalid.

    Validates bounds, magic, CRC, record count and offset range of the header. `records.validate` validates the records.
    """

def scan_all(buffer: Buffer, start: int = 0, end: int | None = None, check_crc: bool = True) -> list[Batch]:
    """Return every batch of [start, end), which they must fill exactly. Raises BatchError at the first invalid one."""

def stamp(
    buffer: Buffer,
    start: int,
    base_offset: int,
    leader_epoch: int,
    append_time_ms: int = -1,
    max_timestamp: int | None = None,
) -> None:
    """Write the fields that the broker sets into the batch at `start` of a writable buffer. `scan` must have accepted
    the batch.

    Base offset and leader epoch are outside the CRC. `append_time_ms` >= 0 makes it a LogAppendTime batch with that
    time. Otherwise it becomes a CreateTime batch, and `max_timestamp`, if given, is written to the header (Kafka writes
    the maximum that it computed, whatever the client wrote). The CRC is recomputed only if one of these changes the
    header.
    """

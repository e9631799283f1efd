"""Validation of a producer's batch before the append: framing, header, records (A10; Kafka: LogValidator,
ProduceRequest)."""

from __future__ import annotations

from kafka_shim.cext.batch import BatchError, Verdict, scan
from kafka_shim.cext.records import iterate, recompress, scan_plain, validate
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage.results import Buffer, NotOneBatchError, RecordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.cext.batch import Batch
    from kafka_shim.cext.records import RecordsSummary
    from kafka_shim.config import TopicConfig

NO_TIMESTAMP = -1
ZSTD = 4
ZSTD_SINCE_PRODUCE = 7
CODECS = {"none": 0, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# A batch may decompress to at most this multiple of `max.message.bytes` (128 MiB at the default); above that it is
# taken for a decompression bomb. gzip itself allows a factor of 1,032, which would let a client make the broker
# allocate a gigabyte.
EXPANSION_LIMIT = 128
SHOWN_ERRORS = 3
# From these sizes on a thread decompresses a batch (its size then, by codec) or recompresses it: half a millisecond
# of work (docs/adr/0047-more-than-one-core.md).
LEAST_DECOMPRESSED_APART_BYTES = {1: 128 << 10, 2: 1024 << 10, 3: 1536 << 10, 4: 1024 << 10}
LEAST_COMPRESSED_APART_BYTES = 64 << 10
# Header positions: the end of the length field, the magic, the end of the attributes. Then the least valid length, that
# of an empty message of magic 0.
LENGTH_END, MAGIC, ATTRIBUTES_END, LEAST_OLD_LENGTH = 12, 16, 23, 14

_CORRUPT = frozenset({Verdict.BAD_LENGTH, Verdict.UNKNOWN_MAGIC, Verdict.BAD_CRC})
# In Kafka these are exceptions without an error code of their own, so it returns UNKNOWN_SERVER_ERROR.
_UNEXPECTED = frozenset({Verdict.BAD_CODEC, Verdict.BAD_COMPRESSED_DATA})
# Kafka checks codec, number of batches, base offset and size of a complete batch before it detects these.
_FOUND_LATER = frozenset({Verdict.BAD_CRC, Verdict.BAD_OFFSET_RANGE, Verdict.BAD_COUNT, Verdict.BAD_CODEC})
_NO_BATCH = frozenset({Verdict.SHORT, Verdict.TRUNCATED})


def check(records: Buffer, name: str, version: int, now_ms: int, config: TopicConfig) -> tuple[Batch, int]:
    """Check a partition's Produce data: exactly one valid batch. Returns its header and the greatest timestamp of its
    records. `version` is the Produce API version. Raises KafkaError, RecordsError."""
    before_ms, after_ms = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    batch = scan_plain(records, config.max_message_bytes, config.compact, now_ms, before_ms, after_ms)
    if batch is not None:
        return batch, batch.max_timestamp
    # It is compressed or unusual (LogAppendTime allows any time), or invalid: what follows says why.
    batch = read_header(records, name, version, config)
    return batch, check_records(records, batch, name, now_ms, config).max_timestamp


class Checked:
    """What a thread found of a batch before its append. `config` are the options by which it was checked. `error` is
    what `check` raised; without one `batch` and `max_timestamp` are what it returned, and `stored` is the batch as it
    is stored if the topic recompresses it. `spent_ns` is the time of the thread."""

    __slots__ = ("batch", "config", "error", "max_timestamp", "spent_ns", "stored")

    batch: Batch
    max_timestamp: int

    def __init__(self, config: TopicConfig) -> None:
        self.config = config
        self.stored: bytearray | None = None
        self.error: Exception | None = None
        self.spent_ns = 0


def takes_long(records: Buffer, expected_bytes: int, config: TopicConfig) -> bool:
    """Whether a partition's Produce data, which decompresses to `expected_bytes`, should be checked in a thread: to
    decompress it, or to recompress it, takes the event loop too long."""
    if len(records) < ATTRIBUTES_END:
        return False
    codec = records[ATTRIBUTES_END - 1] & 7
    if expected_bytes > LEAST_DECOMPRESSED_APART_BYTES.get(codec, 0):
        return True
    if config.compression_type == "producer" or codec == CODECS[config.compression_type]:
        return False
    return max(expected_bytes, len(records)) > LEAST_COMPRESSED_APART_BYTES


def check_apart(records: Buffer, name: str, version: int, now_ms: int, config: TopicConfig) -> Checked:
    """`check`, and what the topic recompresses. It needs the bytes and the options alone: for any thread."""
    checked = Checked(config)
    try:
        batch, checked.max_timestamp = check(records, name, version, now_ms, config)
        codec = target_codec(batch, config)
        if codec != batch.compression:
            checked.stored, batch = compress_anew(records, batch, codec, name, config)
        checked.batch = batch
    except KafkaError as err:
        checked.error = err.without_frames()  # its frames would keep the records
    except Exception as err:  # a bug, or memory is short: the append raises it
        checked.error = err
    return checked


def compress_anew(records: Buffer, batch: Batch, codec: int, name: str, config: TopicConfig) -> tuple[bytearray, Batch]:
    """Recompress the batch with the topic's `compression.type`. The size is checked again because it may have grown.
    Raises KafkaError."""
    stored = recompress(records, batch, codec, level_of(codec, config))
    if len(stored) > config.max_message_bytes:
        raise too_large(name, len(stored), config)
    return stored, scan(stored, check_crc=False)


def read_header(records: Buffer, name: str, version: int, config: TopicConfig) -> Batch:
    """Return the header of the one batch in a partition's Produce data. `version` is the Produce API version. Raises
    KafkaError if the bytes are not exactly one valid batch, the version does not support the codec, the base offset is
    not 0, or the batch exceeds `max.message.bytes`."""
    try:
        batch = scan(records)
    except BatchError as err:
        if err.verdict in _FOUND_LATER:
            header = bytes(memoryview(records)[:ATTRIBUTES_END])
            size_bytes = LENGTH_END + int.from_bytes(header[8:LENGTH_END])
            base_offset = int.from_bytes(header[:8], signed=True)
            _check_frame(records, header[-1] & 7, base_offset, size_bytes, name, version, config)
        raise _unreadable(records, err, name, version) from None
    _check_frame(records, batch.compression, batch.base_offset, batch.size_bytes, name, version, config)
    return batch


def check_framing(records: Buffer, name: str, version: int, config: TopicConfig) -> None:
    """Raises what Kafka finds before it asks a transaction's coordinator: not exactly one batch of magic 2, or a codec
    that the version does not have."""
    view = memoryview(records)
    if (
        len(view) >= ATTRIBUTES_END
        and len(view) == LENGTH_END + int.from_bytes(view[8:LENGTH_END])
        and view[MAGIC] == 2
        and (version >= ZSTD_SINCE_PRODUCE or view[ATTRIBUTES_END - 1] & 7 != ZSTD)
    ):
        return
    try:
        read_header(records, name, version, config)
    except KafkaError as error:
        if isinstance(error, NotOneBatchError) or error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
            raise


def _check_frame(
    records: Buffer, codec: int, base_offset: int, size_bytes: int, name: str, version: int, config: TopicConfig
) -> None:
    if version < ZSTD_SINCE_PRODUCE and codec == ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if size_bytes != len(memoryview(records)):
        _check_rest(records, size_bytes, version)
    if base_offset != 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"The baseOffset of the record batch in the append to {name} should be 0, but it is {base_offset}",
        )
    if size_bytes > config.max_message_bytes:
        raise too_large(name, size_bytes, config)


def too_large(name: str, size_bytes: int, config: TopicConfig) -> KafkaError:
    """Return MESSAGE_TOO_LARGE for a batch above `max.message.bytes`."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append to {name} is {size_bytes} bytes which exceeds the maximum configured "
        f"value of {config.max_message_bytes}.",
    )


def above_segment(name: str, size_bytes: int, config: TopicConfig) -> KafkaError:
    """Return RECORD_LIST_TOO_LARGE for a batch above `segment.bytes`."""
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"Message batch size is {size_bytes} bytes in append to partition {name}, which exceeds the maximum configured "
        f"segment size of {config.segment_bytes}.",
    )


def check_records(records: Buffer, batch: Batch, name: str, now_ms: int, config: TopicConfig) -> RecordsSummary:
    """Check the header fields and every record of a batch. Returns a summary of the records. Raises KafkaError,
    RecordsError."""
    if batch.is_control:
        raise _invalid(f"Clients are not allowed to write control records in topic partition {name}")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id} in "
            f"topic partition {name}"
        )
    try:
        summary = validate(records, batch, max(config.max_message_bytes, batch.size_bytes) * EXPANSION_LIMIT)
    except BatchError as err:
        raise _bad_record(err, name) from None
    lacks_keys = config.compact and summary.null_key_count > 0
    if lacks_keys or batch.is_log_append_time or not _times_are_fine(summary, now_ms, config):
        _refuse_records(records, batch, name, now_ms, config)
    return summary


def _times_are_fine(summary: RecordsSummary, now_ms: int, config: TopicConfig) -> bool:
    return (
        config.message_timestamp_type != "CreateTime"
        # The least time that is set. Others may be before 1970, and are limited.
        or summary.min_timestamp == NO_TIMESTAMP
        or (
            summary.max_timestamp - now_ms <= config.message_timestamp_after_max_ms
            and now_ms - summary.min_timestamp <= config.message_timestamp_before_max_ms
        )
    )


def _refuse_records(records: Buffer, batch: Batch, name: str, now_ms: int, config: TopicConfig) -> None:
    """Raises RecordsError with the first fault of each record: no key for a compacted topic, then its time. One fault
    of a time gives them all its error code, as in Kafka."""
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    first, last = now_ms - config.message_timestamp_before_max_ms, now_ms + config.message_timestamp_after_max_ms
    for index, record in enumerate(iterate(records, batch.position, batch.end_position)):
        if config.compact and record.key is None:
            errors.append((index, f"Compacted topic cannot accept message without key in topic partition {name}"))
        elif config.message_timestamp_type == "CreateTime" and record.timestamp != NO_TIMESTAMP:
            if not first <= record.timestamp <= last:
                code = ErrorCode.INVALID_TIMESTAMP
                message = (
                    f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. The "
                    f"timestamp should be within [{first}, {last}]"
                )
                errors.append((index, message))
        elif batch.is_log_append_time:
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, "Producer should not set timestamp type to LogAppendTime."))
    if not errors:
        return
    if code is ErrorCode.INVALID_TIMESTAMP:
        raise RecordsError(code, "One or more records have been rejected due to invalid timestamp", errors)
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:SHOWN_ERRORS])
    raise RecordsError(
        code,
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]",
        errors,
    )


def _check_rest(records: Buffer, position: int, version: int) -> None:
    """Check the bytes after the batch. An incomplete second batch is ignored, as in Kafka. A complete one raises
    NotOneBatchError; bytes that are no batch raise CORRUPT_MESSAGE."""
    try:
        scan(records, position, check_crc=False)
    except BatchError as err:
        bad_length = _has_bad_length(records, position)
        if err.verdict in _NO_BATCH and not bad_length:
            return
        if bad_length or err.verdict in (Verdict.BAD_LENGTH, Verdict.UNKNOWN_MAGIC):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "Bytes after the record batch are no record batch") from None
    raise NotOneBatchError(
        f"Produce requests with version {version} are only allowed to contain exactly one record batch per partition"
    )


def _has_bad_length(records: Buffer, position: int) -> bool:
    """Whether the length field at `position` is complete and smaller than any batch."""
    rest = memoryview(records)[position : position + LENGTH_END]
    return len(rest) == LENGTH_END and int.from_bytes(rest[8:], signed=True) < LEAST_OLD_LENGTH


def _unreadable(records: Buffer, err: BatchError, name: str, version: int) -> KafkaError:
    if err.verdict in _CORRUPT or _has_bad_length(records, 0):
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt ({err.verdict.name}) in topic partition {name}."
        )
    if err.verdict in _NO_BATCH:
        return NotOneBatchError(
            f"Produce requests with version {version} must have at least one record batch per partition"
        )
    if err.verdict == Verdict.BAD_MAGIC:
        return NotOneBatchError(
            f"Produce requests with version {version} are only allowed to contain record batches with magic version 2"
        )
    return _bad_record(err, name)


def _bad_record(err: BatchError, name: str) -> KafkaError:
    if err.verdict in _UNEXPECTED:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    where = f" at record {err.record_index}" if err.record_index >= 0 else ""
    return _invalid(f"Invalid record batch in the append to {name}: {Verdict(err.verdict).name}{where}")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def target_codec(batch: Batch, config: TopicConfig) -> int:
    """Return the codec to store the batch with: its own if `compression.type` is `producer`, else that of the topic."""
    return batch.compression if config.compression_type == "producer" else CODECS[config.compression_type]


def level_of(codec: int, config: TopicConfig) -> int | None:
    """Return the configured compression level of a codec, or None if the codec has no levels."""
    levels: dict[int, Any] = {
        1: config.compression_gzip_level,
        3: config.compression_lz4_level,
        4: config.compression_zstd_level,
    }
    return levels.get(codec)


def writable(records: Buffer, size_bytes: int) -> Buffer:
    """Return the batch in writable memory, without the bytes after it. Copies it if the request's buffer is
    read-only."""
    view = records if isinstance(records, memoryview) else memoryview(records)
    if view.readonly:
        return bytearray(view[:size_bytes])
    return view if len(view) == size_bytes else view[:size_bytes]

"""RecordBatch v2 headers: validate, read, write, stamp. batch.pxd has the layout, batch.pyi explains the verdicts."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafka_shim.cext.bigendian cimport (
    load_i16, load_i32, load_i64, load_u32, store_i16, store_i32, store_i64, store_u32,
)
from kafka_shim.cext.crc32c cimport crc32c_update

HEADER_SIZE = BATCH_HEADER_SIZE

_TEXTS = {
    Verdict.SHORT: "fewer bytes than a batch header",
    Verdict.BAD_LENGTH: "the batch length is negative or too small",
    Verdict.TRUNCATED: "the batch length exceeds the bytes that are there",
    Verdict.BAD_MAGIC: "magic 0 and 1 are not supported",
    Verdict.UNKNOWN_MAGIC: "unknown magic",
    Verdict.BAD_CRC: "the CRC does not match the bytes",
    Verdict.BAD_OFFSET_RANGE: "the last offset delta is negative",
    Verdict.BAD_COUNT: "the record count does not fit the offset range or the records",
    Verdict.BAD_CODEC: "unknown compression type",
    Verdict.BAD_COMPRESSED_DATA: "the records do not decompress",
    Verdict.TOO_LARGE: "the records decompress to more than the limit",
    Verdict.BAD_RECORD_LENGTH: "a record's length is not that of its fields",
    Verdict.BAD_VARINT: "a number is cut off or over-long",
    Verdict.BAD_FIELD_LENGTH: "a key or value exceeds its record",
    Verdict.BAD_HEADERS: "a header count or length is negative or exceeds the record",
    Verdict.BAD_OFFSET_DELTA: "offset deltas are not consecutive from 0",
    Verdict.TRAILING_BYTES: "bytes remain after the last record",
    Verdict.OUT_OF_ORDER: "the base offset is below the end of the batch before",
}


class BatchError(Exception):
    def __init__(self, verdict, position=0, record_index=-1):
        self.verdict = Verdict(verdict)
        self.position = position
        self.record_index = record_index
        where = f"batch at {position}" if record_index < 0 else f"record {record_index} of the batch at {position}"
        super().__init__(f"{where}: {_TEXTS[self.verdict]}")

    def __reduce__(self):
        return BatchError, (self.verdict, self.position, self.record_index)


@cython.final
@cython.freelist(128)
cdef class Batch:
    @property
    def compression(self):
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self):
        return (self.attributes & TRANSACTIONAL_FLAG) != 0

    @property
    def is_control(self):
        return (self.attributes & CONTROL_FLAG) != 0

    @property
    def is_log_append_time(self):
        return (self.attributes & LOG_APPEND_TIME_FLAG) != 0

    @property
    def has_delete_horizon(self):
        return (self.attributes & DELETE_HORIZON_FLAG) != 0

    @property
    def last_offset(self):
        # Unsigned, because a client may send any base offset and a signed overflow is undefined.
        return <int64_t>(<uint64_t>self.base_offset + <uint64_t>self.last_offset_delta)

    @property
    def next_offset(self):
        return <int64_t>(<uint64_t>self.base_offset + <uint64_t>self.last_offset_delta + 1)

    @property
    def last_sequence(self):
        if self.base_sequence < 0:
            return -1
        return <int32_t>((<uint32_t>self.base_sequence + <uint32_t>self.last_offset_delta) & 0x7FFFFFFF)

    @property
    def end_position(self):
        return self.position + self.size_bytes

    def __repr__(self):
        return (
            f"Batch(position={self.position}, base_offset={self.base_offset}, last_offset={self.last_offset}, "
            f"size_bytes={self.size_bytes}, record_count={self.record_count}, attributes={self.attributes:#x}, "
            f"producer_id={self.producer_id}, producer_epoch={self.producer_epoch}, base_sequence={self.base_sequence})"
        )


cdef Verdict check_bounds(const uint8_t* p, int64_t size) noexcept nogil:
    cdef int64_t length
    if size < MAGIC_END:
        return Verdict.SHORT
    length = load_i32(p + AT_LENGTH)
    if length < LEAST_OLD_LENGTH:
        return Verdict.BAD_LENGTH
    # Check the magic before the rest of the header: a message of magic 0 or 1 may be smaller than a header of magic 2.
    if p[AT_MAGIC] < 2:
        return Verdict.BAD_MAGIC
    if p[AT_MAGIC] != 2:
        return Verdict.UNKNOWN_MAGIC
    if length < BATCH_HEADER_SIZE - LENGTH_END:
        return Verdict.BAD_LENGTH
    if length > size - LENGTH_END:
        return Verdict.TRUNCATED
    return Verdict.OK


cdef Verdict check_header(const uint8_t* p) noexcept nogil:
    cdef int64_t last_offset_delta = load_i32(p + AT_LAST_OFFSET_DELTA)
    cdef int64_t record_count = load_i32(p + AT_RECORD_COUNT)
    if last_offset_delta < 0:
        return Verdict.BAD_OFFSET_RANGE
    # Fewer records are valid in a log: compaction removes records and keeps the offset range, down to an empty batch.
    if record_count < 0 or record_count > last_offset_delta + 1:
        return Verdict.BAD_COUNT
    if load_i16(p + AT_ATTRIBUTES) & CODEC_MASK > 4:
        return Verdict.BAD_CODEC
    return Verdict.OK


cdef bint crc_matches(const uint8_t* p, int64_t size_bytes) noexcept nogil:
    return crc32c_update(0, p + AT_ATTRIBUTES, <size_t>(size_bytes - AT_ATTRIBUTES)) == load_u32(p + AT_CRC)


cdef Batch read_header(const uint8_t* p, int64_t position):
    cdef Batch batch = Batch.__new__(Batch)
    batch.position = position
    batch.base_offset = load_i64(p + AT_BASE_OFFSET)
    batch.size_bytes = LENGTH_END + <int64_t>load_i32(p + AT_LENGTH)
    batch.leader_epoch = load_i32(p + AT_LEADER_EPOCH)
    batch.magic = p[AT_MAGIC]
    batch.crc = load_u32(p + AT_CRC)
    batch.attributes = load_i16(p + AT_ATTRIBUTES)
    batch.last_offset_delta = load_i32(p + AT_LAST_OFFSET_DELTA)
    batch.base_timestamp = load_i64(p + AT_BASE_TIMESTAMP)
    batch.max_timestamp = load_i64(p + AT_MAX_TIMESTAMP)
    batch.producer_id = load_i64(p + AT_PRODUCER_ID)
    batch.producer_epoch = load_i16(p + AT_PRODUCER_EPOCH)
    batch.base_sequence = load_i32(p + AT_BASE_SEQUENCE)
    batch.record_count = load_i32(p + AT_RECORD_COUNT)
    return batch


cdef Header header_of(Batch batch):
    return Header(
        batch.base_offset,
        batch.leader_epoch,
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.record_count,
    )


cdef bytearray write_batch(const Header* header, object records):
    cdef Py_buffer view
    cdef bytearray batch
    cdef uint8_t* p
    cdef int64_t size_bytes
    PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
    try:
        size_bytes = BATCH_HEADER_SIZE + view.len
        if size_bytes - LENGTH_END > MAX_BATCH_BYTES:
            raise ValueError("the records exceed the size of a batch")
        batch = PyByteArray_FromStringAndSize(NULL, size_bytes)
        p = <uint8_t*>PyByteArray_AS_STRING(batch)
        memcpy(p + BATCH_HEADER_SIZE, view.buf, <size_t>view.len)
    finally:
        PyBuffer_Release(&view)
    store_i64(p + AT_BASE_OFFSET, header.base_offset)
    store_i32(p + AT_LENGTH, <int32_t>(size_bytes - LENGTH_END))
    store_i32(p + AT_LEADER_EPOCH, header.leader_epoch)
    p[AT_MAGIC] = 2
    store_i16(p + AT_ATTRIBUTES, header.attributes)
    store_i32(p + AT_LAST_OFFSET_DELTA, header.last_offset_delta)
    store_i64(p + AT_BASE_TIMESTAMP, header.base_timestamp)
    store_i64(p + AT_MAX_TIMESTAMP, header.max_timestamp)
    store_i64(p + AT_PRODUCER_ID, header.producer_id)
    store_i16(p + AT_PRODUCER_EPOCH, header.producer_epoch)
    store_i32(p + AT_BASE_SEQUENCE, header.base_sequence)
    store_i32(p + AT_RECORD_COUNT, header.record_count)
    _store_crc(p, size_bytes)
    return batch


cdef void _store_crc(uint8_t* p, int64_t size_bytes) noexcept:
    """The CRC of a batch that is whole but for it."""
    cdef size_t covered = <size_t>(size_bytes - AT_ATTRIBUTES)
    cdef uint32_t crc
    if covered > RELEASE_GIL_CRC_BYTES:
        with nogil:
            crc = crc32c_update(0, p + AT_ATTRIBUTES, covered)
    else:
        crc = crc32c_update(0, p + AT_ATTRIBUTES, covered)
    store_u32(p + AT_CRC, crc)


cdef Verdict _check(const uint8_t* p, int64_t size, bint check_crc) noexcept:
    """Check one batch, cheapest checks first. The CRC comes before the fields that it covers, as in Kafka."""
    cdef Verdict verdict = check_bounds(p, size)
    cdef int64_t size_bytes
    cdef bint good
    if verdict != Verdict.OK:
        return verdict
    if check_crc:
        size_bytes = LENGTH_END + <int64_t>load_i32(p + AT_LENGTH)
        if size_bytes > RELEASE_GIL_CRC_BYTES:
            with nogil:
                good = crc_matches(p, size_bytes)
        else:
            good = crc_matches(p, size_bytes)
        if not good:
            return Verdict.BAD_CRC
    return check_header(p)


cdef int64_t _limit(object end, int64_t start, int64_t size) except -1:
    """Return the end of the range as a position inside the buffer."""
    cdef int64_t stop = size if end is None else <int64_t>end
    if start < 0 or stop < start or stop > size:
        raise ValueError(f"range [{start}, {stop}) is not inside a buffer of {size} bytes")
    return stop


def scan(buffer, int64_t start=0, end=None, bint check_crc=True):
    cdef Py_buffer view
    cdef const uint8_t* p
    cdef Verdict verdict
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        p = <const uint8_t*>view.buf + start
        verdict = _check(p, _limit(end, start, view.len) - start, check_crc)
        if verdict != Verdict.OK:
            raise BatchError(verdict, start)
        return read_header(p, start)
    finally:
        PyBuffer_Release(&view)


def scan_all(buffer, int64_t start=0, end=None, bint check_crc=True):
    cdef Py_buffer view
    cdef const uint8_t* p
    cdef Verdict verdict
    cdef Batch batch
    cdef int64_t stop
    cdef list found = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        stop = _limit(end, start, view.len)
        while start < stop:
            p = <const uint8_t*>view.buf + start
            verdict = _check(p, stop - start, check_crc)
            if verdict != Verdict.OK:
                raise BatchError(verdict, start)
            batch = read_header(p, start)
            found.append(batch)
            start += batch.size_bytes
        return found
    finally:
        PyBuffer_Release(&view)


def stamp(
    buffer, int64_t start, int64_t base_offset, int32_t leader_epoch, int64_t append_time_ms=-1, max_timestamp=None
):
    cdef Py_buffer view
    cdef uint8_t* p
    cdef Verdict verdict
    cdef int16_t before
    cdef int16_t attributes
    cdef int64_t latest
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        p = <uint8_t*>view.buf + start
        verdict = check_bounds(p, view.len - start) if 0 <= start <= view.len else Verdict.SHORT
        if verdict != Verdict.OK:
            raise BatchError(verdict, start)
        before = load_i16(p + AT_ATTRIBUTES)
        latest = load_i64(p + AT_MAX_TIMESTAMP)
        attributes = before
        if append_time_ms >= 0:
            attributes |= LOG_APPEND_TIME_FLAG
            latest = append_time_ms
        else:
            attributes &= ~LOG_APPEND_TIME_FLAG
            if max_timestamp is not None:
                latest = max_timestamp
        store_i64(p + AT_BASE_OFFSET, base_offset)
        store_i32(p + AT_LEADER_EPOCH, leader_epoch)
        if attributes == before and latest == load_i64(p + AT_MAX_TIMESTAMP):
            return
        store_i16(p + AT_ATTRIBUTES, attributes & KNOWN_ATTRIBUTES)
        store_i64(p + AT_MAX_TIMESTAMP, latest)
        _store_crc(p, LENGTH_END + <int64_t>load_i32(p + AT_LENGTH))
    finally:
        PyBuffer_Release(&view)

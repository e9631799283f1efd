"""The records inside a RecordBatch v2: walk, check, search. records.pxd draws their layout; `builder` writes them."""

cimport cython
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kafka_shim.cext.batch cimport (
    AT_ATTRIBUTES,
    AT_BASE_OFFSET,
    AT_BASE_SEQUENCE,
    AT_BASE_TIMESTAMP,
    AT_LAST_OFFSET_DELTA,
    AT_LENGTH,
    AT_MAGIC,
    AT_MAX_TIMESTAMP,
    AT_PRODUCER_ID,
    AT_RECORD_COUNT,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_FLAG,
    LENGTH_END,
    LOG_APPEND_TIME_FLAG,
    RELEASE_GIL_WALK_BYTES,
    Batch,
    Verdict,
    check_bounds,
    check_header,
    crc_matches,
    read_header,
)
from kafka_shim.cext.bigendian cimport load_i16, load_i32, load_i64
from kafka_shim.cext.varint cimport read_varint, read_varlong

from kafka_shim.cext.batch import BatchError
from kafka_shim.cext.builder import build, build_marker, parse_marker, recompress  # no-cython-lint
from kafka_shim.cext.compression import (
    DEFAULT_LIMIT_BYTES, STORED_LIMIT_BYTES, DecompressError, LimitExceeded, decompress, expected_bytes,
)

cdef enum:
    NO_TIMESTAMP = -1
    GZIP = 1
    MOST_UNPACKED_GZIP_BYTES = 128 << 10    # it takes ten times as long as the other codecs
    # Of an ordinary record before its key: length, attributes, timestamp delta, offset delta, length of the key.
    MOST_SHORT_HEAD_BYTES = 9
    NO_SHORT = 0x7FFFFFFF                   # no varint of two bytes


cdef inline const uint8_t* _skip_field(
    const uint8_t* p, const uint8_t* end, const uint8_t** field, int32_t* size, Verdict* verdict
) noexcept nogil:
    """Over a length, below 0 for null, and that many bytes; NULL with a verdict when they do not fit."""
    p = read_varint(p, end, size)
    if p == NULL:
        verdict[0] = Verdict.BAD_VARINT
        return NULL
    field[0] = p
    if size[0] < 0:
        size[0] = -1
        return p
    if size[0] > end - p:
        verdict[0] = Verdict.BAD_FIELD_LENGTH
        return NULL
    return p + size[0]


cdef Verdict read_record(const uint8_t* p, const uint8_t* end, RecordFields* fields) noexcept nogil:
    cdef int32_t length = 0
    cdef int32_t size = 0
    cdef int32_t _i
    cdef const uint8_t* field
    cdef Verdict verdict = Verdict.OK
    p = read_varint(p, end, &length)
    if p == NULL:
        return Verdict.BAD_VARINT
    if length < 1 or length > end - p:
        return Verdict.BAD_RECORD_LENGTH
    end = p + length
    fields.end = end
    p = read_varlong(p + 1, end, &fields.timestamp_delta)
    if p == NULL:
        return Verdict.BAD_VARINT
    p = read_varint(p, end, &fields.offset_delta)
    if p == NULL:
        return Verdict.BAD_VARINT
    p = _skip_field(p, end, &fields.key, &fields.key_size, &verdict)
    if p == NULL:
        return verdict
    p = _skip_field(p, end, &fields.value, &fields.value_size, &verdict)
    if p == NULL:
        return verdict
    p = read_varint(p, end, &fields.header_count)
    if p == NULL:
        return Verdict.BAD_VARINT
    # A header is two bytes at least, which bounds the loop by the record's own bytes.
    if fields.header_count < 0 or fields.header_count > (end - p) // 2:
        return Verdict.BAD_HEADERS
    fields.headers = p
    for _i in range(fields.header_count):
        p = _skip_field(p, end, &field, &size, &verdict)
        if p == NULL or size < 0:
            return Verdict.BAD_HEADERS
        p = _skip_field(p, end, &field, &size, &verdict)
        if p == NULL:
            return Verdict.BAD_HEADERS
    return Verdict.OK if p == end else Verdict.BAD_RECORD_LENGTH


cdef inline const uint8_t* _read_short(const uint8_t* p, uint32_t* raw) noexcept nogil:
    """Over a varint of one or two bytes, both of which may be read; NULL if it is longer."""
    raw[0] = p[0]
    if raw[0] < 0x80:
        return p + 1
    raw[0] = (raw[0] & 0x7F) | (<uint32_t>p[1] << 7)
    return p + 2 if p[1] < 0x80 else NULL


cdef inline const uint8_t* _over_ordinary(
    const uint8_t* p, const uint8_t* end, uint32_t offset, uint32_t* time, uint32_t* key_size
) noexcept nogil:
    """Over a record without headers, with a value and with numbers of two bytes at most, whose offset delta, in zigzag
    form, is `offset`. Sets the timestamp delta and the length of the key, in that form. NULL: it is another one, or a
    wrong one, which `read_record` tells apart in twice the instructions."""
    cdef const uint8_t* record_end
    cdef uint32_t raw = 0
    if end - p < MOST_SHORT_HEAD_BYTES:
        return NULL
    p = _read_short(p, &raw)
    if p == NULL or raw & 1 or <int64_t>(raw >> 1) > end - p:
        return NULL
    record_end = p + (raw >> 1)
    p = _read_short(p + 1, time)
    if p == NULL:
        return NULL
    p = _read_short(p, &raw)
    if p == NULL or raw != offset:
        return NULL
    p = _read_short(p, key_size)
    if p == NULL:
        return NULL
    if not key_size[0] & 1:     # an odd one is below 0: null
        p += key_size[0] >> 1
    # The length of the value, of two bytes that may be read, and the number of headers.
    if record_end - p < 2:
        return NULL
    p = _read_short(p, &raw)
    if p == NULL or raw & 1 or <int64_t>(raw >> 1) != record_end - p - 1 or (record_end - 1)[0] != 0:
        return NULL
    return record_end


cdef inline int64_t _timestamp(int64_t base_timestamp, int64_t delta) noexcept nogil:
    # Wraps like Java's long; a signed overflow would be undefined.
    return <int64_t>(<uint64_t>base_timestamp + <uint64_t>delta)


@cython.final
cdef class _Records:
    """The decompressed records of one batch as [start, end), and what keeps them alive."""

    cdef Py_buffer view
    cdef const uint8_t* start
    cdef const uint8_t* end

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef _Records _open(object buffer, Batch batch, int64_t limit_bytes):
    """Decompressed when they are compressed. Proves that `batch` is one of `buffer`."""
    cdef _Records records = _Records.__new__(_Records)
    cdef const uint8_t* p
    cdef int codec = batch.attributes & CODEC_MASK
    PyObject_GetBuffer(buffer, &records.view, PyBUF_SIMPLE)
    if batch.position < 0 or not BATCH_HEADER_SIZE <= batch.size_bytes <= records.view.len - batch.position:
        raise ValueError("the batch is not one of this buffer")
    p = <const uint8_t*>records.view.buf + batch.position
    if codec == 0 or batch.record_count == 0:
        records.start = p + BATCH_HEADER_SIZE
        records.end = p + batch.size_bytes
        return records
    compressed = memoryview(buffer).cast("B")[batch.position + BATCH_HEADER_SIZE:batch.position + batch.size_bytes]
    try:
        plain = decompress(codec, compressed, limit_bytes)
    except LimitExceeded as error:
        raise BatchError(Verdict.TOO_LARGE, batch.position) from error
    except DecompressError as error:
        raise BatchError(Verdict.BAD_COMPRESSED_DATA, batch.position) from error
    PyBuffer_Release(&records.view)
    PyObject_GetBuffer(plain, &records.view, PyBUF_SIMPLE)
    records.start = <const uint8_t*>records.view.buf
    records.end = records.start + records.view.len
    return records


# ---- One record after the other ----

@cython.final
@cython.freelist(256)
cdef class Record:
    def __repr__(self):
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )


cdef inline bytes _bytes(const uint8_t* p, int32_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char*>p, size)


cdef tuple _headers(const RecordFields* fields):
    cdef const uint8_t* p = fields.headers
    cdef const uint8_t* key = NULL
    cdef const uint8_t* value = NULL
    cdef int32_t key_size = 0
    cdef int32_t value_size = 0
    cdef Verdict verdict = Verdict.OK
    cdef list headers = []
    cdef int32_t _i
    for _i in range(fields.header_count):
        p = _skip_field(p, fields.end, &key, &key_size, &verdict)
        p = _skip_field(p, fields.end, &value, &value_size, &verdict)
        headers.append((PyUnicode_DecodeUTF8(<const char*>key, key_size, "surrogateescape"), _bytes(value, value_size)))
    return tuple(headers)


@cython.final
cdef class _Iterator:
    """State of `iterate`: the range of batches that is left, and the place inside the current one."""

    cdef object buffer
    cdef int64_t position           # of the next batch
    cdef int64_t end
    cdef int64_t limit_bytes
    cdef bint check_crc
    cdef Batch batch                # the current one
    cdef _Records records
    cdef const uint8_t* at          # of the next record
    cdef int32_t index

    def __iter__(self):
        return self

    def __next__(self):
        cdef RecordFields fields
        cdef Record record
        cdef Verdict verdict
        while self.batch is None or self.index == self.batch.record_count:
            if self.batch is not None and self.batch.record_count and self.at != self.records.end:
                raise BatchError(Verdict.TRAILING_BYTES, self.batch.position)
            self.batch = None
            self.records = None
            if self.position >= self.end:
                raise StopIteration
            self._open_next()
        if self.at == self.records.end:
            raise BatchError(Verdict.BAD_COUNT, self.batch.position, self.index)
        verdict = read_record(self.at, self.records.end, &fields)
        if verdict != Verdict.OK:
            raise BatchError(verdict, self.batch.position, self.index)
        self.at = fields.end
        self.index += 1
        record = Record.__new__(Record)
        record.offset = <int64_t>(<uint64_t>self.batch.base_offset + <uint64_t><int64_t>fields.offset_delta)
        if self.batch.attributes & LOG_APPEND_TIME_FLAG:
            record.timestamp = self.batch.max_timestamp
        else:
            record.timestamp = _timestamp(self.batch.base_timestamp, fields.timestamp_delta)
        record.key = _bytes(fields.key, fields.key_size)
        record.value = _bytes(fields.value, fields.value_size)
        record.headers = _headers(&fields) if fields.header_count else ()
        return record

    cdef int _open_next(self) except -1:
        cdef Py_buffer view
        cdef const uint8_t* p
        cdef Verdict verdict
        PyObject_GetBuffer(self.buffer, &view, PyBUF_SIMPLE)
        try:
            p = <const uint8_t*>view.buf + self.position
            verdict = check_bounds(p, min(self.end, view.len) - self.position)
            if verdict == Verdict.OK:
                verdict = check_header(p)
            if verdict != Verdict.OK:
                raise BatchError(verdict, self.position)
            self.batch = read_header(p, self.position)
            if self.check_crc and not crc_matches(p, self.batch.size_bytes):
                raise BatchError(Verdict.BAD_CRC, self.position)
        finally:
            PyBuffer_Release(&view)
        self.records = _open(self.buffer, self.batch, self.limit_bytes)
        self.at = self.records.start
        self.index = 0
        self.position += self.batch.size_bytes
        return 0


def iterate(buffer, int64_t start=0, end=None, bint check_crc=False, int64_t limit_bytes=STORED_LIMIT_BYTES):
    cdef _Iterator iterator = _Iterator.__new__(_Iterator)
    cdef int64_t size = memoryview(buffer).nbytes
    iterator.buffer = buffer
    iterator.position = start
    iterator.end = size if end is None else <int64_t>end
    if start < 0 or iterator.end < start or iterator.end > size:
        raise ValueError(f"range [{start}, {iterator.end}) is not inside a buffer of {size} bytes")
    iterator.limit_bytes = limit_bytes
    iterator.check_crc = check_crc
    return iterator


# ---- All records at once ----

@cython.final
@cython.freelist(64)
cdef class RecordsSummary:
    def __repr__(self):
        return (
            f"RecordsSummary(record_count={self.record_count}, max_timestamp={self.max_timestamp}, "
            f"offset_of_max_timestamp={self.offset_of_max_timestamp}, min_timestamp={self.min_timestamp}, "
            f"null_key_count={self.null_key_count}, first_null_key={self.first_null_key}, "
            f"uncompressed_bytes={self.uncompressed_bytes})"
        )


ctypedef struct _Facts:
    int64_t max_timestamp
    int64_t min_timestamp
    int32_t index_of_max
    int32_t null_key_count
    int32_t first_null_key
    int32_t index               # how far the walk came


cdef Verdict _walk(
    const uint8_t* p, const uint8_t* end, int32_t record_count, int64_t base_timestamp, _Facts* facts
) noexcept nogil:
    cdef RecordFields fields
    cdef Verdict verdict
    cdef const uint8_t* record_end
    cdef int64_t timestamp
    cdef uint32_t time = 0
    cdef uint32_t known_time = NO_SHORT
    cdef uint32_t key_size = 0
    cdef int32_t i
    for i in range(record_count):
        record_end = _over_ordinary(p, end, <uint32_t>i << 1, &time, &key_size)
        if record_end == NULL:
            facts.index = i
            if p == end:
                return Verdict.BAD_COUNT
            verdict = read_record(p, end, &fields)
            if verdict != Verdict.OK:
                return verdict
            if fields.offset_delta != i:
                return Verdict.BAD_OFFSET_DELTA
            record_end = fields.end
            key_size = fields.key_size < 0
            time = NO_SHORT
            timestamp = _timestamp(base_timestamp, fields.timestamp_delta)
        else:
            timestamp = _timestamp(base_timestamp, <int32_t>((time >> 1) ^ (0 - (time & 1))))
        p = record_end
        if key_size & 1:
            if facts.null_key_count == 0:
                facts.first_null_key = i
            facts.null_key_count += 1
        if time == known_time and time != NO_SHORT:
            continue            # as the record before
        known_time = time
        if timestamp > facts.max_timestamp:
            facts.max_timestamp = timestamp
            facts.index_of_max = i
        if timestamp != NO_TIMESTAMP and (timestamp < facts.min_timestamp or facts.min_timestamp == NO_TIMESTAMP):
            facts.min_timestamp = timestamp
    facts.index = -1
    return Verdict.OK if p == end else Verdict.TRAILING_BYTES


def validate(buffer, Batch batch not None, int64_t limit_bytes=DEFAULT_LIMIT_BYTES):
    cdef RecordsSummary summary
    cdef _Records records
    cdef _Facts facts = _Facts(NO_TIMESTAMP, NO_TIMESTAMP, -1, 0, -1, -1)
    cdef Verdict verdict
    if batch.record_count <= 0 or <int64_t>batch.record_count != <int64_t>batch.last_offset_delta + 1:
        raise BatchError(Verdict.BAD_COUNT, batch.position)
    records = _open(buffer, batch, limit_bytes)
    if records.end - records.start > RELEASE_GIL_WALK_BYTES:
        with nogil:
            verdict = _walk(records.start, records.end, batch.record_count, batch.base_timestamp, &facts)
    else:
        verdict = _walk(records.start, records.end, batch.record_count, batch.base_timestamp, &facts)
    if verdict != Verdict.OK:
        raise BatchError(verdict, batch.position, facts.index)
    summary = RecordsSummary.__new__(RecordsSummary)
    summary.record_count = batch.record_count
    summary.null_key_count = facts.null_key_count
    summary.first_null_key = facts.first_null_key
    summary.uncompressed_bytes = records.end - records.start
    if batch.attributes & LOG_APPEND_TIME_FLAG:
        summary.max_timestamp = summary.min_timestamp = batch.max_timestamp
        summary.offset_of_max_timestamp = batch.base_offset
    else:
        summary.max_timestamp = facts.max_timestamp
        summary.min_timestamp = facts.min_timestamp
        summary.offset_of_max_timestamp = (
            -1 if facts.index_of_max < 0 else <int64_t>(<uint64_t>batch.base_offset + <uint64_t>facts.index_of_max)
        )
    return summary


def decompressed_bytes(buffer):
    cdef Py_buffer view
    cdef const uint8_t* p
    cdef int codec = 0
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    p = <const uint8_t*>view.buf
    if view.len > BATCH_HEADER_SIZE and p[AT_MAGIC] == 2:
        codec = load_i16(p + AT_ATTRIBUTES) & CODEC_MASK
    PyBuffer_Release(&view)
    return expected_bytes(codec, memoryview(buffer).cast("B")[BATCH_HEADER_SIZE:]) if codec else 0


cdef bint _is_framed(const uint8_t* p, int64_t size_bytes, int64_t limit_bytes, int forbidden) noexcept nogil:
    """What `scan_plain` asks of a batch but for its records; `forbidden` attributes must be 0."""
    cdef int64_t record_count
    if (
        size_bytes > limit_bytes
        or size_bytes > RELEASE_GIL_WALK_BYTES
        or check_bounds(p, size_bytes) != Verdict.OK
        or LENGTH_END + <int64_t>load_i32(p + AT_LENGTH) != size_bytes
        or load_i16(p + AT_ATTRIBUTES) & forbidden
        or not crc_matches(p, size_bytes)
        or check_header(p) != Verdict.OK
    ):
        return False
    record_count = load_i32(p + AT_RECORD_COUNT)
    return (
        load_i64(p + AT_BASE_OFFSET) == 0
        and record_count != 0
        and record_count == <int64_t>load_i32(p + AT_LAST_OFFSET_DELTA) + 1
        and (load_i64(p + AT_PRODUCER_ID) < 0 or load_i32(p + AT_BASE_SEQUENCE) >= 0)
    )


cdef bint _has_plain_records(
    const uint8_t* p,
    const uint8_t* start,
    const uint8_t* end,
    bint needs_keys,
    int64_t now_ms,
    int64_t before_limit_ms,
    int64_t after_limit_ms,
) noexcept nogil:
    """What `scan_plain` asks of the records, [start, end), of the batch at `p`."""
    cdef _Facts facts = _Facts(NO_TIMESTAMP, NO_TIMESTAMP, -1, 0, -1, -1)
    return (
        _walk(start, end, load_i32(p + AT_RECORD_COUNT), load_i64(p + AT_BASE_TIMESTAMP), &facts) == Verdict.OK
        and not (needs_keys and facts.null_key_count)
        and facts.max_timestamp == load_i64(p + AT_MAX_TIMESTAMP)
        and facts.min_timestamp >= 0
        and facts.max_timestamp - now_ms <= after_limit_ms
        and now_ms - facts.min_timestamp <= before_limit_ms
    )


cdef bint is_plain(
    const uint8_t* p,
    int64_t size_bytes,
    int64_t limit_bytes,
    bint needs_keys,
    int64_t now_ms,
    int64_t before_limit_ms,
    int64_t after_limit_ms,
) noexcept nogil:
    return _is_framed(
        p, size_bytes, limit_bytes, CODEC_MASK | LOG_APPEND_TIME_FLAG | CONTROL_FLAG
    ) and _has_plain_records(
        p, p + BATCH_HEADER_SIZE, p + size_bytes, needs_keys, now_ms, before_limit_ms, after_limit_ms
    )


cdef inline int64_t _most_unpacked_bytes(int codec) noexcept nogil:
    return MOST_UNPACKED_GZIP_BYTES if codec == GZIP else RELEASE_GIL_WALK_BYTES


cdef bint unpacks_plain(
    const uint8_t* p,
    int64_t size_bytes,
    int64_t limit_bytes,
    bint needs_keys,
    int64_t now_ms,
    int64_t before_limit_ms,
    int64_t after_limit_ms,
) except -1:
    cdef Py_buffer view
    cdef int codec
    if not _is_framed(p, size_bytes, limit_bytes, LOG_APPEND_TIME_FLAG | CONTROL_FLAG):
        return False
    codec = load_i16(p + AT_ATTRIBUTES) & CODEC_MASK
    packed = PyMemoryView_FromMemory(<char*>p + BATCH_HEADER_SIZE, size_bytes - BATCH_HEADER_SIZE, PyBUF_READ)
    try:
        records = decompress(codec, packed, min(limit_bytes, _most_unpacked_bytes(codec)))
        PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
    except Exception:
        return False    # also without memory: the slow path says what it is
    try:
        return _has_plain_records(
            p, <const uint8_t*>view.buf, <const uint8_t*>view.buf + view.len, needs_keys, now_ms, before_limit_ms,
            after_limit_ms,
        )
    finally:
        PyBuffer_Release(&view)


cdef bint may_unpack(const uint8_t* p, int64_t size_bytes, int64_t limit_bytes) except -1:
    cdef int codec = load_i16(p + AT_ATTRIBUTES) & CODEC_MASK
    cdef int64_t expected = expected_bytes(
        codec, PyMemoryView_FromMemory(<char*>p + BATCH_HEADER_SIZE, size_bytes - BATCH_HEADER_SIZE, PyBUF_READ)
    )
    return 0 < expected <= min(limit_bytes, _most_unpacked_bytes(codec))


def scan_plain(
    buffer, int64_t limit_bytes, bint needs_keys, int64_t now_ms, int64_t before_limit_ms, int64_t after_limit_ms
):
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if not is_plain(
            <const uint8_t*>view.buf, view.len, limit_bytes, needs_keys, now_ms, before_limit_ms, after_limit_ms
        ):
            return None
        return read_header(<const uint8_t*>view.buf, 0)
    finally:
        PyBuffer_Release(&view)


cdef Verdict _seek(
    _Records records,
    Batch batch,
    int64_t timestamp_ms,
    int64_t from_offset,
    int64_t* offset,
    int64_t* timestamp,
    int32_t* index,
) noexcept nogil:
    """The first record that is late enough; `index` is left at the record count when there is none."""
    cdef RecordFields fields
    cdef Verdict verdict
    cdef const uint8_t* p = records.start
    index[0] = 0
    while index[0] < batch.record_count:
        if p == records.end:
            return Verdict.BAD_COUNT
        verdict = read_record(p, records.end, &fields)
        if verdict != Verdict.OK:
            return verdict
        p = fields.end
        offset[0] = <int64_t>(<uint64_t>batch.base_offset + <uint64_t><int64_t>fields.offset_delta)
        if batch.attributes & LOG_APPEND_TIME_FLAG:
            timestamp[0] = batch.max_timestamp
        else:
            timestamp[0] = _timestamp(batch.base_timestamp, fields.timestamp_delta)
        if timestamp[0] >= timestamp_ms and offset[0] >= from_offset:
            return Verdict.OK
        index[0] += 1
    return Verdict.OK


def find_timestamp(
    buffer, Batch batch not None, int64_t timestamp_ms, int64_t from_offset=0, int64_t limit_bytes=STORED_LIMIT_BYTES
):
    cdef _Records records = _open(buffer, batch, limit_bytes)
    cdef int64_t offset = 0
    cdef int64_t timestamp = 0
    cdef int32_t index = 0
    cdef Verdict verdict
    with nogil:
        verdict = _seek(records, batch, timestamp_ms, from_offset, &offset, &timestamp, &index)
    if verdict != Verdict.OK:
        raise BatchError(verdict, batch.position, index)
    return (offset, timestamp) if index < batch.record_count else None

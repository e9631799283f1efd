"""Write record batches: from tuples, as transaction markers, under another codec."""

from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from kafka_shim.cext.batch cimport (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    MAX_BATCH_BYTES,
    TRANSACTIONAL_FLAG,
    Batch,
    Header,
    Verdict,
    header_of,
    write_batch,
)
from kafka_shim.cext.bigendian cimport load_i16, load_i32, store_i16, store_i32
from kafka_shim.cext.varint cimport MAX_VARINT32, MAX_VARINT64, size_varint, size_varlong, write_varint, write_varlong

from kafka_shim.cext.batch import BatchError
from kafka_shim.cext.compression import STORED_LIMIT_BYTES, DecompressError, LimitExceeded, compress, decompress

cdef enum:
    MARKER_ABORT = 0
    MARKER_COMMIT = 1
    MARKER_KEY_BYTES = 4
    MARKER_VALUE_BYTES = 6
    MARKER_BYTES = 17           # the record with its length
    NO_SEQUENCE = -1


cdef class _Out:
    """Bytes that grow; freed with it."""

    cdef uint8_t* data
    cdef int64_t used
    cdef int64_t capacity

    def __dealloc__(self):
        free(self.data)

    cdef int reserve(self, int64_t more) except -1:
        cdef int64_t wanted = self.used + more
        cdef uint8_t* grown
        if wanted <= self.capacity:
            return 0
        if wanted > MAX_BATCH_BYTES:
            raise ValueError("the records exceed the size of a batch")
        wanted = max(wanted, 2 * self.capacity, 512)
        grown = <uint8_t*>realloc(self.data, wanted)
        if grown == NULL:
            raise MemoryError
        self.data = grown
        self.capacity = wanted
        return 0

    cdef int put_varint(self, int32_t value) except -1:
        self.reserve(MAX_VARINT32)
        self.used = write_varint(self.data + self.used, value) - self.data
        return 0

    cdef int put_field(self, bytes value) except -1:
        """Write a length (-1 for None) and the bytes."""
        if value is None:
            return self.put_varint(-1)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
        self.reserve(size + MAX_VARINT32)
        self.put_varint(<int32_t>size)
        memcpy(self.data + self.used, PyBytes_AS_STRING(value), size)
        self.used += size
        return 0


cdef inline int64_t _field_size(bytes value) except -1:
    if value is None:
        return 1
    if PyBytes_GET_SIZE(value) > MAX_BATCH_BYTES:
        raise ValueError("the records exceed the size of a batch")
    return size_varint(<int32_t>PyBytes_GET_SIZE(value)) + PyBytes_GET_SIZE(value)


cdef inline bytes _to_bytes(object value):
    """Return the object itself if it is bytes, else a copy, because another buffer could change during the write."""
    if value is None or type(value) is bytes:
        return value
    return bytes(memoryview(value))


cdef int _put_record(
    _Out out, int64_t timestamp_delta, int32_t offset_delta, object key, object value, object headers
) except -1:
    cdef bytes key_bytes = _to_bytes(key)
    cdef bytes value_bytes = _to_bytes(value)
    cdef list pairs = []
    cdef int64_t size
    for header_key, header_value in headers:
        if isinstance(header_key, str):
            header_key = header_key.encode("utf-8", "surrogateescape")
        pairs.append((_to_bytes(header_key), _to_bytes(header_value)))
    size = 1 + size_varlong(timestamp_delta) + size_varint(offset_delta) + size_varint(<int32_t>len(pairs))
    size += _field_size(key_bytes) + _field_size(value_bytes)
    for header_key, header_value in pairs:
        size += _field_size(header_key) + _field_size(header_value)
    out.reserve(size + MAX_VARINT32)
    out.put_varint(<int32_t>size)
    out.reserve(1 + MAX_VARINT64)
    out.data[out.used] = 0
    out.used = write_varlong(out.data + out.used + 1, timestamp_delta) - out.data
    out.put_varint(offset_delta)
    out.put_field(key_bytes)
    out.put_field(value_bytes)
    out.put_varint(<int32_t>len(pairs))
    for header_key, header_value in pairs:
        out.put_field(header_key)
        out.put_field(header_value)
    return 0


def build(
    records,
    *,
    int64_t base_offset=0,
    int32_t leader_epoch=0,
    int codec=0,
    level=None,
    int64_t producer_id=-1,
    int16_t producer_epoch=-1,
    int32_t base_sequence=-1,
    bint transactional=False,
    bint control=False,
    int timestamp_type=0,
    int64_t append_time_ms=-1,
):
    cdef _Out out = _Out()
    cdef Header header
    cdef int64_t base_timestamp = 0
    cdef int64_t max_timestamp = -1
    cdef int64_t timestamp
    cdef int32_t count = 0
    cdef int16_t attributes = codec
    if not 0 <= codec <= 4:
        raise ValueError(f"no codec {codec}")
    for key, value, timestamp_ms, headers in records:
        timestamp = append_time_ms if timestamp_type else <int64_t>timestamp_ms
        if count == 0:
            base_timestamp = max_timestamp = timestamp
        max_timestamp = max(max_timestamp, timestamp)
        _put_record(out, <int64_t>(<uint64_t>timestamp - <uint64_t>base_timestamp), count, key, value, headers)
        count += 1
    if count == 0:
        raise ValueError("a batch needs a record")
    if timestamp_type:
        attributes |= LOG_APPEND_TIME_FLAG
    if transactional:
        attributes |= TRANSACTIONAL_FLAG
    if control:
        attributes |= CONTROL_FLAG
    header = Header(
        base_offset,
        leader_epoch,
        attributes,
        count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    plain = PyMemoryView_FromMemory(<char*>out.data, out.used, PyBUF_READ)
    return write_batch(&header, plain if codec == 0 else compress(codec, plain, level))


def build_marker(
    int64_t producer_id,
    int16_t producer_epoch,
    int32_t coordinator_epoch,
    bint commit,
    int64_t timestamp_ms,
    *,
    int64_t base_offset=0,
    int32_t leader_epoch=0,
):
    return marker_batch(
        producer_id, producer_epoch, coordinator_epoch, commit, timestamp_ms, base_offset, leader_epoch
    )


cdef bytearray marker_batch(
    int64_t producer_id, int16_t producer_epoch, int32_t coordinator_epoch, bint commit, int64_t timestamp_ms,
    int64_t base_offset, int32_t leader_epoch
):
    # Key: version 0 and the type of control record; value: version 0 and the coordinator epoch. Kafka writes no newer
    # version, whatever the transaction version. Each number of the record is a varint of one byte.
    cdef uint8_t[MARKER_BYTES] record
    cdef uint8_t* p = record
    cdef Header header = Header(
        base_offset, leader_epoch, TRANSACTIONAL_FLAG | CONTROL_FLAG, 0, timestamp_ms, timestamp_ms, producer_id,
        producer_epoch, NO_SEQUENCE, 1
    )
    p[0], p[1], p[2], p[3] = 2 * (MARKER_BYTES - 1), 0, 0, 0
    p[4] = 2 * MARKER_KEY_BYTES
    store_i16(p + 5, 0)
    store_i16(p + 7, MARKER_COMMIT if commit else MARKER_ABORT)
    p[9] = 2 * MARKER_VALUE_BYTES
    store_i16(p + 10, 0)
    store_i32(p + 12, coordinator_epoch)
    p[16] = 0                   # no headers
    return write_batch(&header, PyMemoryView_FromMemory(<char*>p, MARKER_BYTES, PyBUF_READ))


def parse_marker(bytes key not None, bytes value not None):
    cdef const uint8_t* k = <const uint8_t*>PyBytes_AS_STRING(key)
    cdef const uint8_t* v = <const uint8_t*>PyBytes_AS_STRING(value)
    if len(key) < 4 or load_i16(k) < 0 or not MARKER_ABORT <= load_i16(k + 2) <= MARKER_COMMIT:
        raise ValueError(f"not the key of an end-transaction marker: {key!r}")
    if len(value) < 6 or load_i16(v) < 0:
        raise ValueError(f"not the value of an end-transaction marker: {value!r}")
    return load_i16(k + 2) == MARKER_COMMIT, load_i32(v + 2)


def recompress(buffer, Batch batch not None, int codec, level=None, int64_t limit_bytes=STORED_LIMIT_BYTES):
    cdef Header header = header_of(batch)
    cdef Py_buffer view
    if not 0 <= codec <= 4:
        raise ValueError(f"no codec {codec}")
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if batch.position < 0 or not BATCH_HEADER_SIZE <= batch.size_bytes <= view.len - batch.position:
            raise ValueError("the batch is not one of this buffer")
    finally:
        PyBuffer_Release(&view)
    stored = memoryview(buffer).cast("B")[batch.position + BATCH_HEADER_SIZE:batch.position + batch.size_bytes]
    try:
        plain = decompress(batch.attributes & CODEC_MASK, stored, limit_bytes)
    except LimitExceeded as error:
        raise BatchError(Verdict.TOO_LARGE, batch.position) from error
    except DecompressError as error:
        raise BatchError(Verdict.BAD_COMPRESSED_DATA, batch.position) from error
    header.attributes = <int16_t>(batch.attributes & ~CODEC_MASK | codec)
    return write_batch(&header, compress(codec, plain, level))

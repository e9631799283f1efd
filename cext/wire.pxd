"""Bounded reads and growing writes of protocol primitives, for C callers. ``wire.pyx`` wraps them for Python."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafka_shim.cext.bigendian cimport load_u16, load_u32, load_u64, store_u16, store_u32, store_u64

cdef enum:
    # Kafka refuses longer strings in both directions, also where the length is a varint.
    MAX_STRING_BYTES = 0x7FFF
    FIXED_BYTES = 1024

# Where a read stands. The holder of the buffer keeps it alive.
cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end

# Bytes being written: in `fixed` while they fit, then in `heap`. Start with out_init, end with out_free.
cdef struct Out:
    uint8_t* data
    Py_ssize_t size_bytes
    Py_ssize_t capacity_bytes
    uint8_t* heap
    uint8_t fixed[FIXED_BYTES]

# Slow paths; always raise.
cdef int fail_short(Cursor* c, Py_ssize_t wanted_bytes) except -1
cdef int fail_varint(Cursor* c) except -1
cdef int out_grow(Out* out, Py_ssize_t more_bytes) except -1


cdef inline int need(Cursor* c, Py_ssize_t size_bytes) except -1:
    """Proves that the next bytes are there; every load below comes after one of these."""
    if c.end - c.at < size_bytes:
        return fail_short(c, size_bytes)
    return 0


cdef inline int read_i8(Cursor* c, int8_t* value) except -1:
    need(c, 1)
    value[0] = <int8_t>c.at[0]
    c.at += 1
    return 0


cdef inline int read_i16(Cursor* c, int16_t* value) except -1:
    need(c, 2)
    value[0] = <int16_t>load_u16(c.at)
    c.at += 2
    return 0


cdef inline int read_i32(Cursor* c, int32_t* value) except -1:
    need(c, 4)
    value[0] = <int32_t>load_u32(c.at)
    c.at += 4
    return 0


cdef inline int read_i64(Cursor* c, int64_t* value) except -1:
    need(c, 8)
    value[0] = <int64_t>load_u64(c.at)
    c.at += 8
    return 0


cdef inline int read_uvarint(Cursor* c, uint32_t* value) except -1:
    """At most five bytes; bits above 32 are dropped, as ``ByteUtils.readUnsignedVarint`` drops them."""
    cdef uint32_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 35:
        if c.at >= c.end:
            return fail_short(c, 1)
        byte = c.at[0]
        c.at += 1
        result |= <uint32_t>(byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = result
            return 0
        shift += 7
    return fail_varint(c)


cdef inline int read_uvarlong(Cursor* c, uint64_t* value) except -1:
    """At most ten bytes; bits above 64 are dropped."""
    cdef uint64_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 70:
        if c.at >= c.end:
            return fail_short(c, 1)
        byte = c.at[0]
        c.at += 1
        result |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = result
            return 0
        shift += 7
    return fail_varint(c)


cdef inline void out_init(Out* out) noexcept:
    out.data = out.fixed
    out.size_bytes = 0
    out.capacity_bytes = FIXED_BYTES
    out.heap = NULL


cdef void out_free(Out* out) noexcept


cdef inline int reserve(Out* out, Py_ssize_t more_bytes) except -1:
    if out.capacity_bytes - out.size_bytes < more_bytes:
        return out_grow(out, more_bytes)
    return 0


cdef inline int write_i8(Out* out, int8_t value) except -1:
    reserve(out, 1)
    out.data[out.size_bytes] = <uint8_t>value
    out.size_bytes += 1
    return 0


cdef inline int write_i16(Out* out, int16_t value) except -1:
    reserve(out, 2)
    store_u16(out.data + out.size_bytes, <uint16_t>value)
    out.size_bytes += 2
    return 0


cdef inline int write_i32(Out* out, int32_t value) except -1:
    reserve(out, 4)
    store_u32(out.data + out.size_bytes, <uint32_t>value)
    out.size_bytes += 4
    return 0


cdef inline int write_i64(Out* out, int64_t value) except -1:
    reserve(out, 8)
    store_u64(out.data + out.size_bytes, <uint64_t>value)
    out.size_bytes += 8
    return 0


cdef inline int write_uvarint(Out* out, uint32_t value) except -1:
    reserve(out, 5)
    while value >= 0x80:
        out.data[out.size_bytes] = <uint8_t>(value | 0x80)
        out.size_bytes += 1
        value >>= 7
    out.data[out.size_bytes] = <uint8_t>value
    out.size_bytes += 1
    return 0


cdef inline int write_uvarlong(Out* out, uint64_t value) except -1:
    reserve(out, 10)
    while value >= 0x80:
        out.data[out.size_bytes] = <uint8_t>(value | 0x80)
        out.size_bytes += 1
        value >>= 7
    out.data[out.size_bytes] = <uint8_t>value
    out.size_bytes += 1
    return 0


cdef inline int write_raw(Out* out, const void* data, Py_ssize_t size_bytes) except -1:
    reserve(out, size_bytes)
    if size_bytes > 0:
        memcpy(out.data + out.size_bytes, data, <size_t>size_bytes)
    out.size_bytes += size_bytes
    return 0


# Lengths: a two- or four-byte number, or (compact) an unsigned varint of the length plus one. Negative means null.

cdef inline int read_short_length(Cursor* c, bint compact, int32_t* length) except -1:
    cdef int16_t plain = 0
    if compact:
        return read_long_length(c, True, length)
    read_i16(c, &plain)
    length[0] = plain
    return 0


cdef inline int read_long_length(Cursor* c, bint compact, int32_t* length) except -1:
    cdef uint32_t packed = 0
    if compact:
        read_uvarint(c, &packed)
        length[0] = <int32_t>(packed - 1)
        return 0
    return read_i32(c, length)


cdef inline int write_long_length(Out* out, bint compact, Py_ssize_t length) except -1:
    if compact:
        return write_uvarint(out, <uint32_t>(length + 1))
    return write_i32(out, <int32_t>length)


cdef inline int write_short_length(Out* out, bint compact, Py_ssize_t length) except -1:
    if compact:
        return write_uvarint(out, <uint32_t>(length + 1))
    return write_i16(out, <int16_t>length)


cdef object decode_string(const uint8_t* data, Py_ssize_t size_bytes)
cdef object read_string(Cursor* c, bint compact)                     # None for null
cdef object read_bytes(Cursor* c, bint compact)                      # None for null
cdef int write_string(Out* out, bint compact, str value) except -1   # None is written as null
cdef int write_bytes(Out* out, bint compact, object value) except -1

"""Bounded variable-length integers: base 128, low group first; the signed ones zigzag.

A reader takes the end of the readable bytes. It returns the position after the number, or NULL if the number is cut off
by `end` or has more than 5 (10) bytes. Excess bits of the last byte are dropped, as in Kafka's `ByteUtils`. A writer
requires room for MAX_VARINT32 (MAX_VARINT64) bytes, which the caller has checked, and returns the position after the
number.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    MAX_VARINT32 = 5
    MAX_VARINT64 = 10


cdef inline const uint8_t* read_uvarint(const uint8_t* p, const uint8_t* end, uint32_t* value) noexcept nogil:
    cdef uint32_t result
    cdef uint32_t byte
    cdef int shift = 7
    if p >= end:
        return NULL
    result = p[0]
    p += 1
    if result < 0x80:
        value[0] = result
        return p
    result &= 0x7F
    while shift < 35:
        if p >= end:
            return NULL
        byte = p[0]
        p += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = result
            return p
        shift += 7
    return NULL


cdef inline const uint8_t* read_uvarlong(const uint8_t* p, const uint8_t* end, uint64_t* value) noexcept nogil:
    cdef uint64_t result
    cdef uint64_t byte
    cdef int shift = 7
    if p >= end:
        return NULL
    result = p[0]
    p += 1
    if result < 0x80:
        value[0] = result
        return p
    result &= 0x7F
    while shift < 70:
        if p >= end:
            return NULL
        byte = p[0]
        p += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = result
            return p
        shift += 7
    return NULL


cdef inline const uint8_t* read_varint(const uint8_t* p, const uint8_t* end, int32_t* value) noexcept nogil:
    cdef uint32_t raw = 0
    p = read_uvarint(p, end, &raw)
    value[0] = <int32_t>((raw >> 1) ^ (0 - (raw & 1)))
    return p


cdef inline const uint8_t* read_varlong(const uint8_t* p, const uint8_t* end, int64_t* value) noexcept nogil:
    cdef uint64_t raw = 0
    p = read_uvarlong(p, end, &raw)
    value[0] = <int64_t>((raw >> 1) ^ (0 - (raw & 1)))
    return p


cdef inline uint8_t* write_uvarint(uint8_t* p, uint32_t value) noexcept nogil:
    while value >= 0x80:
        p[0] = <uint8_t>(value | 0x80)
        p += 1
        value >>= 7
    p[0] = <uint8_t>value
    return p + 1


cdef inline uint8_t* write_uvarlong(uint8_t* p, uint64_t value) noexcept nogil:
    while value >= 0x80:
        p[0] = <uint8_t>(value | 0x80)
        p += 1
        value >>= 7
    p[0] = <uint8_t>value
    return p + 1


cdef inline uint32_t zigzag32(int32_t value) noexcept nogil:
    return (<uint32_t>value << 1) ^ <uint32_t>(value >> 31)


cdef inline uint64_t zigzag64(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline uint8_t* write_varint(uint8_t* p, int32_t value) noexcept nogil:
    return write_uvarint(p, zigzag32(value))


cdef inline uint8_t* write_varlong(uint8_t* p, int64_t value) noexcept nogil:
    return write_uvarlong(p, zigzag64(value))


cdef inline int size_uvarlong(uint64_t value) noexcept nogil:
    cdef int size_bytes = 1
    while value >= 0x80:
        value >>= 7
        size_bytes += 1
    return size_bytes


cdef inline int size_varint(int32_t value) noexcept nogil:
    return size_uvarlong(zigzag32(value))


cdef inline int size_varlong(int64_t value) noexcept nogil:
    return size_uvarlong(zigzag64(value))

"""Java's string hash, which Kafka uses to assign group ids and transactional ids to partitions of internal topics."""

from libc.limits cimport INT_MIN
from libc.stdint cimport int32_t, uint32_t


def java_string_hash(str text not None):
    return <int32_t> _hash(text)


def internal_partition(str key not None, Py_ssize_t partition_count):
    return partition_of(key, partition_count)


cdef int32_t partition_of(str key, Py_ssize_t partition_count) except? -1:
    # The smallest integer has no absolute value; Kafka makes 0 of it (Utils.abs).
    cdef int32_t value = <int32_t> _hash(key)
    if value == INT_MIN:
        return 0
    return <int32_t>((-value if value < 0 else value) % partition_count)


cdef uint32_t _hash(str text) noexcept:
    cdef uint32_t result = 0
    cdef uint32_t unit
    cdef Py_UCS4 character
    for character in text:
        unit = <uint32_t> character
        if unit > 0xFFFF:
            # Two units of UTF-16.
            unit -= 0x10000
            result = 31 * result + (0xD800 | unit >> 10)
            unit = 0xDC00 | (unit & 0x3FF)
        result = 31 * result + unit
    return result

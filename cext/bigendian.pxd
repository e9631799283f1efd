"""Unaligned big-endian loads and stores.

Each uses memcpy, so alignment does not matter, and compiles to one load or store and one byte swap. None checks bounds;
the caller must check them first.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define kshim_big16(x) (x)
    #define kshim_big32(x) (x)
    #define kshim_big64(x) (x)
    #else
    #define kshim_big16(x) __builtin_bswap16(x)
    #define kshim_big32(x) __builtin_bswap32(x)
    #define kshim_big64(x) __builtin_bswap64(x)
    #endif
    """
    uint16_t kshim_big16(uint16_t x) noexcept nogil
    uint32_t kshim_big32(uint32_t x) noexcept nogil
    uint64_t kshim_big64(uint64_t x) noexcept nogil


cdef inline uint16_t load_u16(const uint8_t* p) noexcept nogil:
    cdef uint16_t raw
    memcpy(&raw, p, 2)
    return kshim_big16(raw)


cdef inline uint32_t load_u32(const uint8_t* p) noexcept nogil:
    cdef uint32_t raw
    memcpy(&raw, p, 4)
    return kshim_big32(raw)


cdef inline uint64_t load_u64(const uint8_t* p) noexcept nogil:
    cdef uint64_t raw
    memcpy(&raw, p, 8)
    return kshim_big64(raw)


cdef inline int16_t load_i16(const uint8_t* p) noexcept nogil:
    return <int16_t>load_u16(p)


cdef inline int32_t load_i32(const uint8_t* p) noexcept nogil:
    return <int32_t>load_u32(p)


cdef inline int64_t load_i64(const uint8_t* p) noexcept nogil:
    return <int64_t>load_u64(p)


cdef inline void store_u16(uint8_t* p, uint16_t value) noexcept nogil:
    cdef uint16_t raw = kshim_big16(value)
    memcpy(p, &raw, 2)


cdef inline void store_u32(uint8_t* p, uint32_t value) noexcept nogil:
    cdef uint32_t raw = kshim_big32(value)
    memcpy(p, &raw, 4)


cdef inline void store_u64(uint8_t* p, uint64_t value) noexcept nogil:
    cdef uint64_t raw = kshim_big64(value)
    memcpy(p, &raw, 8)


cdef inline void store_i16(uint8_t* p, int16_t value) noexcept nogil:
    store_u16(p, <uint16_t>value)


cdef inline void store_i32(uint8_t* p, int32_t value) noexcept nogil:
    store_u32(p, <uint32_t>value)


cdef inline void store_i64(uint8_t* p, int64_t value) noexcept nogil:
    store_u64(p, <uint64_t>value)

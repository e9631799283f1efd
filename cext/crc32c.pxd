from libc.stdint cimport uint8_t, uint32_t

# CRC-32C of `size` bytes going on from `value`, through the fastest implementation that this CPU has.
cdef uint32_t crc32c_update(uint32_t value, const uint8_t* data, size_t size) noexcept nogil

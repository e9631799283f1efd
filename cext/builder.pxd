from libc.stdint cimport int16_t, int32_t, int64_t


# `build_marker`.
cdef bytearray marker_batch(
    int64_t producer_id, int16_t producer_epoch, int32_t coordinator_epoch, bint commit, int64_t timestamp_ms,
    int64_t base_offset, int32_t leader_epoch
)

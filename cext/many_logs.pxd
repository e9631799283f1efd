from libc.stdint cimport int32_t, int64_t


# `commit_each` of many_logs.pyi.
cdef dict mark_each(
    dict logs, dict unmarked, object put, bytearray marker, object producer_id, int32_t producer_epoch,
    int32_t coordinator_epoch, int transaction_version, int64_t now_ms, list hooks
)

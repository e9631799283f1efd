from libc.stdint cimport int32_t, int64_t


cdef class SessionBase:
    cdef public int32_t session_id
    cdef public int32_t epoch
    cdef public bint by_id
    cdef public bint is_closed
    cdef public int64_t created_ms
    cdef public int64_t used_ms
    cdef public int64_t next_turn
    cdef public dict partitions
    cdef public dict changed
    cdef public set waiters
    cdef public tuple reader


cdef class CachedBase:
    cdef public object topic
    cdef public str name
    cdef public int32_t partition
    cdef public int32_t max_bytes
    cdef public int32_t current_leader_epoch
    cdef public int32_t last_fetched_epoch
    cdef public int64_t fetch_offset
    cdef public int64_t high_watermark
    cdef public int64_t log_start_offset
    cdef public int64_t segment_base
    cdef public int64_t turn
    cdef public object log
    cdef public SessionBase session

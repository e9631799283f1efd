from libc.stdint cimport int32_t, int64_t


cdef class TransactionEnd:
    cdef public str transactional_id
    cdef public int64_t producer_id
    cdef public int64_t previous_producer_id
    cdef public int64_t next_producer_id
    cdef public int32_t producer_epoch
    cdef public int32_t last_producer_epoch
    cdef public int32_t timeout_ms
    cdef public object state
    cdef public frozenset partitions
    cdef public int64_t start_ms
    cdef public int64_t last_update_ms
    cdef public int32_t client_version

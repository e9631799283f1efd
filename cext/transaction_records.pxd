from libc.stdint cimport int16_t, int32_t, int64_t


cdef class TransactionBase:
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

    # `moved`.
    cdef TransactionBase moved_to(self, object state, frozenset partitions, int64_t now_ms, int32_t client_version)


cdef class Batches:
    cdef object _form_of
    cdef Py_ssize_t _most_partitions
    # Of version 1, by the set of the partitions.
    cdef dict _forms

    # `encode`.
    cdef bytearray batch_of(self, bytes key, TransactionBase txn, int16_t version)


# `note_plain`.
cdef bint note_transition(object events_by_id, TransactionBase txn, Py_ssize_t most_partitions) except -1

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef class Appended:
    cdef readonly int64_t base_offset
    cdef readonly int64_t last_offset
    cdef readonly int64_t append_time_ms
    cdef readonly int64_t log_start_offset
    cdef readonly int64_t size_bytes
    cdef readonly bint duplicate
    cdef readonly object flushed


cdef class Verification:
    cdef readonly int64_t producer_id
    cdef readonly int32_t lowest_sequence
    cdef readonly int32_t producer_epoch
    cdef readonly bint supports_epoch_bump
    cdef readonly int64_t created_ms

    cdef int lower_to(self, int32_t base_sequence, int32_t producer_epoch) except -1


cdef class ProducerBase:
    cdef public int64_t producer_id
    cdef public int32_t epoch
    cdef public int32_t coordinator_epoch
    cdef public int64_t last_timestamp_ms
    cdef public int64_t txn_first_offset
    cdef public list batches

    cdef int64_t _last_sequence(self) except -2


cdef class ProducersBase:
    cdef public dict entries
    cdef public int64_t next_offset
    # First offset of each open transaction -> producer id, ascending.
    cdef public dict _open
    # Producer id -> guard.
    cdef public dict _verifications

    # The guard, None, or the refusal of a stale epoch.
    cdef object guard(
        self, object producer_id, int32_t base_sequence, int32_t producer_epoch, bint supports_epoch_bump,
        int64_t now_ms
    )
    cdef bint _follows(
        self, ProducerBase entry, object producer_id, int32_t epoch, int32_t sequence, bint is_transactional,
        object verification
    ) except -1
    cdef int _apply_data(
        self, ProducerBase entry, object producer_id, int32_t epoch, int32_t sequence, bint is_transactional,
        int64_t base_offset, int32_t last_offset_delta, int64_t max_timestamp_ms, Py_ssize_t cached_batches
    ) except -1


cdef class EpochsBase:
    # -1: there is none.
    cdef public int64_t latest


cdef class LogBase:
    # (topic, partition)
    cdef public tuple key
    cdef public int64_t log_start_offset
    cdef public int64_t log_end_offset
    cdef public int64_t recovery_point
    cdef public int64_t unflushed_since_ms
    cdef public int64_t appended_bytes
    cdef public int64_t appended_records
    cdef public int64_t fetched_bytes
    cdef public int32_t leader_epoch
    cdef public bint is_offline
    cdef public bint is_closed
    cdef public object sync_error
    cdef public object config
    cdef public list segments
    cdef public EpochsBase epochs
    cdef public object producers
    cdef public object _readers
    # Of the configuration `_plain_of`.
    cdef public object _plain_of
    cdef public bint _is_plain
    cdef public bint _is_log_append_time
    cdef public bint _waits_for_disk
    cdef public bint _needs_keys
    cdef public int64_t _most_message_bytes
    cdef public int64_t _before_max_ms
    cdef public int64_t _after_max_ms

    cdef bint _is_ready(self) except -1
    cdef int _advance_to(self, int64_t end_offset, int64_t size_bytes, int64_t now_ms) except -1
    cdef Appended _appended(self, int64_t base_offset, int64_t size_bytes)
    # `append_data` of the batch of `size_bytes` at `p`, which is as `SegmentBase.put_at` has it. Returns its base
    # offset, or -1 if there is something to decide, and then nothing has happened.
    cdef int64_t append_at(
        self, object put, object whole, Py_ssize_t start, uint8_t* p, int64_t size_bytes, int64_t now_ms,
        object verification, Py_ssize_t cached_batches, bint may_be_compressed
    ) except -2
    # `append_data` and `put_own` of log_base.pyi.
    cdef Appended append_data(
        self, object put, object records, int64_t now_ms, object verification, Py_ssize_t cached_batches
    )
    cdef Appended append_own_batch(
        self, object put, bytearray batch, int64_t now_ms, bint is_limited, Py_ssize_t cached_batches
    )
    # `commit_plain`. Returns the offset, or -1 if there is something to decide, and then nothing has happened.
    cdef int64_t append_commit(
        self, object put, bytearray marker, object producer_id, int32_t producer_epoch, int32_t coordinator_epoch,
        int transaction_version, int64_t now_ms
    ) except -2

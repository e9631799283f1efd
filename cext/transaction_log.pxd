from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.log_base cimport LogBase
from kafka_shim.cext.transaction_records cimport Batches, TransactionBase

cdef enum:
    # State ids, as in `TransactionLogValue.TransactionStatus`.
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

cdef enum:
    TV2 = 2


cdef class SlotBase:
    cdef public bytes key
    cdef public int32_t partition
    cdef public object transaction
    cdef public bint pending
    cdef public bint is_ending
    cdef public str stuck
    cdef public frozenset refused
    cdef public dict unmarked
    cdef public object pause_ms
    cdef public dict said
    cdef public object flush

    # Whether nothing is left of an earlier transaction that had trouble.
    cdef bint is_untroubled(self) noexcept


cdef class TransactionLogBase:
    cdef public dict slots
    cdef public dict unloaded
    cdef public dict _loaded
    cdef public object _metadata
    cdef public object _explanations
    cdef object _events
    cdef Batches _batches
    cdef str _topic
    cdef str _feature
    cdef tuple _states
    cdef Py_ssize_t _most_shown
    cdef object _set_of
    cdef object _union

    # The slot of an id that is served and at rest in memory, or None.
    cdef SlotBase slot_of(self, object transactional_id)
    # The log of the slot's partition, or None if it is not to be had without a look at why.
    cdef LogBase log_of(self, SlotBase slot)
    cdef bint is_current(self, SlotBase slot, TransactionBase txn) except -1
    # `TransactionLog.write` of a transition about which there is nothing to decide. Returns whether it is written;
    # if not, nothing has happened. Raises what `write` does.
    cdef bint write_plain(self, SlotBase slot, TransactionBase txn, object put, Py_ssize_t cached_batches) except -1
    # `admission.admit` for requests of version 2 of transactions, which add their partitions. Returns the outcomes, or
    # None if there is something else to decide: `admit` does the same again. No outcome waits for the disk.
    cdef list admit_plain(
        self, str transactional_id, object producer_id, int32_t producer_epoch, list asked, int64_t now_ms,
        object put, Py_ssize_t cached_batches, str api
    )

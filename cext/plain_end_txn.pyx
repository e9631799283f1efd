"""An EndTxn that commits, from frame to frame, and what follows its answer. Contracts are in plain_end_txn.pyi."""

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafka_shim.cext.bigendian cimport load_i16, load_i64
from kafka_shim.cext.builder cimport marker_batch
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.log_base cimport LogBase
from kafka_shim.cext.machine_time cimport now_ms as now_ms_of
from kafka_shim.cext.many_logs cimport mark_each
from kafka_shim.cext.plain_api cimport (
    FollowUp,
    Frame,
    PlainAppend,
    Reader,
    begin_answer,
    end_answer,
    has_no_tags,
    is_armed,
    take,
    take_text,
    text_of,
)
from kafka_shim.cext.transaction_log cimport (
    COMPLETE_COMMIT,
    ONGOING,
    PREPARE_COMMIT,
    TV2,
    SlotBase,
    TransactionLogBase,
)
from kafka_shim.cext.transaction_records cimport TransactionBase
from kafka_shim.cext.wire cimport Out, out_free, out_init, write_i8, write_i16, write_i32, write_i64

cdef enum:
    NO_ID = -1
    TV0 = 0
    # Epochs from this one on are no more ordinary: the last is reserved for markers, another producer id follows.
    EXHAUSTED_EPOCH = 0x7FFE
    # Versions with another form, or more fields.
    FLEXIBLE = 3
    EPOCH_BUMPS = 5

cdef struct Request:
    const uint8_t* transactional_id
    int32_t transactional_id_bytes
    int64_t producer_id
    int16_t producer_epoch

cdef frozenset _NO_PARTITIONS = frozenset()


cdef bint _read(Reader* c, Request* request, bint is_flexible) noexcept nogil:
    """Read a request that commits."""
    if (
        not take_text(c, is_flexible, &request.transactional_id, &request.transactional_id_bytes)
        or request.transactional_id_bytes < 1
        or not take(c, 11)
    ):
        return False
    request.producer_id, request.producer_epoch = load_i64(c.at - 11), load_i16(c.at - 3)
    return (c.at - 1)[0] == 1 and has_no_tags(c, is_flexible)


cdef class PlainEndTxn(PlainAppend):
    cdef object _segment
    cdef Py_ssize_t _cached_batches
    cdef Py_ssize_t _most_markers
    cdef object _unmarked_of

    def __init__(
        self, segment not None, Py_ssize_t cached_batches, Py_ssize_t most_markers, unmarked_of not None
    ):
        self._segment = segment
        self._cached_batches = cached_batches
        self._most_markers = most_markers
        self._unmarked_of = unmarked_of

    cdef object _answer(self, object broker, RequestHeader* header, Frame* frame, Reader* c, int64_t now_ms):
        cdef Request request
        if not _read(c, &request, header.api_version >= FLEXIBLE):
            return None
        return self._serve(broker, &request, header, now_ms)

    cdef object _serve(self, object broker, Request* request, RequestHeader* header, int64_t now_ms):
        cdef TransactionLogBase log
        cdef SlotBase slot
        cdef TransactionBase prepared
        cdef Markers markers
        cdef object failure = None
        cdef bint is_written = False
        try:
            coordinator = broker.transactions
            completion = coordinator.completion
            log = <TransactionLogBase?>coordinator._log
            slot = log.slot_of(text_of(request.transactional_id, request.transactional_id_bytes))
            if slot is None:
                return None
            prepared = self._prepared(log, slot, request, header.api_version >= EPOCH_BUMPS, now_ms)
            if prepared is None:
                return None
            markers = Markers.__new__(Markers)
            markers.fill(self, broker, completion, log, slot, prepared, request)
            unmarked = <dict?>self._unmarked_of(prepared.partitions)
            markers.answer = _response(prepared, header)
        except Exception:
            return None             # nothing is appended: the handler meets it again, and answers
        slot.pending = slot.is_ending = True
        try:
            is_written = log.write_plain(slot, prepared, markers.put, self._cached_batches)
        except Exception as error:
            failure = error
        finally:
            if not is_written:
                slot.pending = slot.is_ending = False
        if not is_written:
            return failure
        slot.unmarked = unmarked
        markers.is_due = True
        self.answered = 1
        return markers

    cdef TransactionBase _prepared(
        self, TransactionLogBase log, SlotBase slot, Request* request, bint bumps, int64_t now_ms
    ):
        """What `state.end` returns for a transaction that is open for this very producer; None if there is anything
        else to decide."""
        cdef TransactionBase txn = <TransactionBase>slot.transaction
        cdef TransactionBase prepared
        if (
            <int>txn.state != ONGOING
            or txn.producer_id != request.producer_id
            or txn.producer_epoch != request.producer_epoch
            or not slot.is_untroubled()
            or len(txn.partitions) > self._most_markers
        ):
            return None
        if bumps and not 0 <= txn.producer_epoch < EXHAUSTED_EPOCH:
            return None
        prepared = txn.moved_to(log._states[PREPARE_COMMIT], txn.partitions, now_ms, TV2 if bumps else TV0)
        prepared.next_producer_id = NO_ID
        if bumps:
            prepared.last_producer_epoch = txn.producer_epoch
            prepared.producer_epoch = txn.producer_epoch + 1
        return prepared


cdef bytes _response(TransactionBase prepared, RequestHeader* header):
    cdef bint is_flexible = header.api_version >= FLEXIBLE
    cdef Out out
    out_init(&out)
    try:
        begin_answer(&out, header, is_flexible)
        write_i32(&out, 0)                                      # throttle time
        write_i16(&out, 0)                                      # no error
        if header.api_version >= EPOCH_BUMPS:
            write_i64(&out, prepared.producer_id)
            write_i16(&out, <int16_t>prepared.producer_epoch)
        if is_flexible:
            write_i8(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)


@cython.final
cdef class Markers(FollowUp):
    """What follows the answer to an EndTxn: the markers and COMPLETE, once."""

    cdef object completion
    cdef object faults
    cdef object clock
    cdef object services
    cdef object put
    cdef TransactionLogBase log
    cdef SlotBase slot
    cdef TransactionBase prepared
    cdef Py_ssize_t cached_batches
    cdef int64_t producer_id
    cdef int32_t producer_epoch
    # From PREPARE to the call.
    cdef bint is_due

    cdef int fill(
        self, PlainEndTxn api, object broker, object completion, TransactionLogBase log, SlotBase slot,
        TransactionBase prepared, Request* request
    ) except -1:
        self.completion = completion
        self.faults = broker.faults
        self.clock = broker.clock
        self.services = broker.logs.services
        self.put = api._segment.append
        self.log = log
        self.slot = slot
        self.prepared = prepared
        self.cached_batches = api._cached_batches
        self.producer_id, self.producer_epoch = request.producer_id, request.producer_epoch
        return 0

    def __call__(self):
        self.is_due = False
        try:
            self._finish()
        except BaseException:
            # There may have been no memory for the call that says so: no retry would ever be made.
            self.slot.is_ending = False
            raise

    def __del__(self):
        # Memory may end before the call. `retry_forgotten` then ends the transaction.
        if self.is_due:
            self.slot.is_ending = False

    cdef int _finish(self) except -1:
        cdef dict failures = None
        cdef object failure = None
        cdef bint is_completed = False
        try:
            failures = self._mark()
        except BaseException as error:
            self.completion.not_marked(self.slot, self.prepared, self._producer(), error)
            raise
        if failures is not None and not failures and not self.slot.unmarked:
            try:
                is_completed = self._complete()
            except BaseException as error:
                failure = error
        if failure is not None:
            self.completion.not_completed(self.slot, self.prepared, failure)
        elif not is_completed:
            self.completion.finish_marked(self.slot, self.prepared, self._producer(), failures)
        return 0

    cdef tuple _producer(self):
        return self.producer_id, self.producer_epoch

    cdef dict _mark(self):
        """Write the markers about which there is nothing to decide. Returns those that failed, or None if there is
        something to decide about all."""
        cdef LogBase log = self.log.log_of(self.slot)
        cdef TransactionBase prepared = self.prepared
        if log is None or is_armed(self.faults) or not self.log.is_current(self.slot, prepared):
            return None
        marker = marker_batch(
            prepared.producer_id, <int16_t>prepared.producer_epoch, log.leader_epoch, True, prepared.last_update_ms,
            0, 0
        )
        return mark_each(
            self.log._loaded, self.slot.unmarked, self.put, marker, prepared.producer_id, prepared.producer_epoch,
            log.leader_epoch, prepared.client_version, prepared.last_update_ms, <list?>self.services.on_marker
        )

    cdef bint _complete(self) except -1:
        """Write COMPLETE. Returns whether that is done, or nothing has happened."""
        cdef TransactionLogBase log = self.log
        cdef SlotBase slot = self.slot
        cdef TransactionBase completed
        if not log.is_current(slot, self.prepared):
            return False
        completed = self.prepared.moved_to(
            log._states[COMPLETE_COMMIT], _NO_PARTITIONS, now_ms_of(self.clock), self.prepared.client_version
        )
        if not log.write_plain(slot, completed, self.put, self.cached_batches):
            return False
        # It counts: what a troubled transaction leaves is not there (`SlotBase.is_untroubled`).
        slot.pending = slot.is_ending = False
        return True

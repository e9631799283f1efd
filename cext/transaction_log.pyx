"""What ordinary transactions ask of the coordinator's log. Contracts are in transaction_log.pyi."""

from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.log_base cimport Appended, LogBase, ProducersBase
from kafka_shim.cext.transaction_records cimport Batches, TransactionBase, note_transition


cdef class SlotBase:
    cdef bint is_untroubled(self) noexcept:
        return not self.stuck and not self.refused and not self.said


cdef class TransactionLogBase:
    def __init__(
        self, dict loaded not None, metadata, explanations, Batches batches not None, str topic not None,
        str feature not None, tuple states not None, Py_ssize_t most_shown, set_of not None, union not None
    ):
        self.slots = {}
        self.unloaded = {}
        self._loaded = loaded
        self._metadata = metadata
        self._explanations = explanations
        self._events = explanations.events
        self._batches = batches
        self._topic = topic
        self._feature = feature
        self._states = states
        self._most_shown = most_shown
        self._set_of = set_of
        self._union = union

    cdef SlotBase slot_of(self, object transactional_id):
        cdef SlotBase slot = self.slots.get(transactional_id)
        if slot is None or self.unloaded or slot.pending or not isinstance(slot.transaction, TransactionBase):
            return None
        return slot

    cdef LogBase log_of(self, SlotBase slot):
        cdef LogBase log
        if self.unloaded:
            return None
        log = self._loaded.get((self._topic, slot.partition))
        return None if log is None or log.is_offline else log

    cdef bint is_current(self, SlotBase slot, TransactionBase txn) except -1:
        return slot.transaction is txn and self.slots.get(txn.transactional_id) is slot

    cdef bint write_plain(self, SlotBase slot, TransactionBase txn, object put, Py_ssize_t cached_batches) except -1:
        cdef LogBase log = self.log_of(slot)
        cdef Appended appended = None
        cdef bytearray batch
        cdef object base_offset
        # Where transaction.version is 0 a record has another form, and some transitions are refused.
        if log is None or <int>(<dict?>self._metadata.image.features).get(self._feature, 0) < 1:
            return False
        batch = self._batches.batch_of(slot.key, txn, 1)
        base_offset = log.log_end_offset    # an object now: there may be no memory for it behind a failed append
        try:
            appended = log.append_own_batch(put, batch, txn.last_update_ms, True, cached_batches)
        except Exception as error:
            refusal = self._refusal_of(log, base_offset, error)
            if refusal is error:
                raise
            raise refusal from error
        if appended is None:
            return False
        # As `TransactionLog.write` does: no call comes before the state is that of the log.
        slot.transaction = txn
        slot.flush = None
        try:
            if not note_transition(self._events, txn, self._most_shown):
                self._explanations.moved(txn)
        except MemoryError:
            pass
        return True

    cdef list admit_plain(
        self, str transactional_id, object producer_id, int32_t producer_epoch, list asked, int64_t now_ms,
        object put, Py_ssize_t cached_batches, str api
    ):
        cdef list outcomes = []
        cdef list added = []
        cdef SlotBase slot = self.slot_of(transactional_id)
        cdef TransactionBase txn
        cdef TransactionBase begun
        cdef LogBase log
        cdef int state
        cdef bint is_written = False
        cdef object failure = None
        if slot is None:
            return None
        txn = <TransactionBase>slot.transaction
        state = txn.state
        if txn.producer_id != producer_id or txn.producer_epoch != producer_epoch or not (
            state == ONGOING or state == EMPTY or state == COMPLETE_COMMIT or state == COMPLETE_ABORT
        ):
            return None
        for one, base_sequence in asked:
            log = <LogBase?>one
            outcome = (<ProducersBase?>log.producers).guard(producer_id, base_sequence, producer_epoch, True, now_ms)
            if isinstance(outcome, Exception):
                return None
            outcomes.append(outcome)
            if outcome is not None:
                added.append(log.key)
        if not added:
            return outcomes
        partitions = <frozenset?>self._set_of(transactional_id, added, is_first=state != ONGOING)
        if state == ONGOING:
            if partitions <= txn.partitions:
                # The request that wrote the record may still wait for the disk.
                return outcomes if slot.flush is None else None
            partitions = <frozenset?>self._union(txn.partitions, partitions)
        begun = txn.moved_to(self._states[ONGOING], partitions, now_ms, TV2)
        begun.start_ms = txn.start_ms if state == ONGOING else now_ms
        try:
            is_written = self.write_plain(slot, begun, put, cached_batches)
        except Exception as error:
            failure = error
        if failure is not None:
            return self._not_added(api, transactional_id, failure, now_ms, (producer_id, producer_epoch), outcomes)
        return outcomes if is_written else None

    def _not_added(self, api, transactional_id, error, now_ms, producer, outcomes):
        raise NotImplementedError("abstract: what this error makes of the outcomes, which may be admissions")

    def _refusal_of(self, log, base_offset, error):
        raise NotImplementedError("abstract: what a failed append at this offset is to the coordinator")

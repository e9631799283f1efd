"""One request's appends to the logs of many partitions, in one pass. Contracts are in many_logs.pyi."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_shim.cext.batch cimport (
    AT_ATTRIBUTES,
    AT_BASE_SEQUENCE,
    AT_MAGIC,
    AT_PRODUCER_EPOCH,
    AT_PRODUCER_ID,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    TRANSACTIONAL_FLAG,
)
from kafka_shim.cext.bigendian cimport load_i16, load_i32, load_i64
from kafka_shim.cext.log_base cimport Appended, LogBase, ProducersBase
from kafka_shim.cext.plans cimport get_field, set_field, slot_of

from kafka_shim.cext.records import decompressed_bytes


@cython.final
@cython.freelist(64)
cdef class PartitionBatch:
    cdef public object answer
    cdef public object records
    cdef public LogBase log
    cdef public object error
    cdef public object verification
    cdef public object checked
    cdef public int64_t expected_bytes
    cdef public bint is_internal
    cdef readonly bint is_transactional
    cdef readonly int64_t producer_id
    cdef readonly int32_t producer_epoch
    cdef readonly int32_t base_sequence

    def __init__(self, answer, records):
        self.fill(answer, records)

    cdef int fill(self, object answer, object records) except -1:
        cdef Py_buffer view
        cdef const uint8_t* p
        cdef bint is_compressed = False
        self.answer = answer
        self.records = records
        self.producer_id = -1
        PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
        if view.len >= BATCH_HEADER_SIZE:
            p = <const uint8_t*>view.buf
            if p[AT_MAGIC] == 2:
                is_compressed = (load_i16(p + AT_ATTRIBUTES) & CODEC_MASK) != 0
                if load_i16(p + AT_ATTRIBUTES) & TRANSACTIONAL_FLAG:
                    self.is_transactional = True
                    self.producer_id = load_i64(p + AT_PRODUCER_ID)
                    self.producer_epoch = load_i16(p + AT_PRODUCER_EPOCH)
                    self.base_sequence = load_i32(p + AT_BASE_SEQUENCE)
        PyBuffer_Release(&view)
        if is_compressed:
            self.expected_bytes = decompressed_bytes(records)
        return 0


cdef class Produced:
    cdef object _row_class
    cdef object _answer_class
    cdef Py_ssize_t _index
    cdef Py_ssize_t _records
    cdef Py_ssize_t _base_offset
    cdef Py_ssize_t _log_start_offset

    def __init__(self, row_class, answer_class):
        self._row_class = row_class
        self._answer_class = answer_class
        self._index = slot_of(row_class, "index")
        self._records = slot_of(row_class, "records")
        self._base_offset = slot_of(answer_class, "base_offset")
        self._log_start_offset = slot_of(answer_class, "log_start_offset")

    def locate(self, rows, key, dict logs not None, str name, dict found not None):
        cdef list left = []
        cdef PartitionBatch batch
        cdef LogBase log
        cdef bint is_keyed = key is name
        for row in rows:
            if type(row) is not self._row_class:
                raise TypeError(f"a partition of a request is a {type(row).__name__}")
            index, records = get_field(row, self._index), get_field(row, self._records)
            place = (key, index)
            batch = PartitionBatch.__new__(PartitionBatch)
            batch.fill(self._answer_class(index=index), b"" if records is None else records)
            if place in found:
                del found[place]
            found[place] = batch
            if name is not None:
                log = logs.get(place if is_keyed else (name, index))
                if log is not None and not log.is_offline:
                    batch.log = log
            if batch.log is None or records is None:
                left.append((batch, records is None))
        return left

    def append(self, list batches not None, put, int64_t now_ms, Py_ssize_t cached_batches):
        cdef list left = []
        cdef int64_t size_bytes = 0
        cdef object base_offset
        cdef PartitionBatch batch
        cdef Appended appended
        for one in batches:
            batch = <PartitionBatch?>one
            if (
                batch.log is None
                or batch.error is not None
                or batch.checked is not None
                or batch.is_internal
                or type(batch.answer) is not self._answer_class
            ):
                left.append(batch)
                continue
            base_offset = batch.log.log_end_offset    # an object: there may be no memory for it behind a failed append
            appended = None
            try:
                try:
                    appended = batch.log.append_data(put, batch.records, now_ms, batch.verification, cached_batches)
                except (OSError, MemoryError) as error:
                    batch.error = batch.log.not_appended(base_offset, error)
                if appended is not None:
                    set_field(batch.answer, self._base_offset, appended.base_offset)
                    set_field(batch.answer, self._log_start_offset, appended.log_start_offset)
                    size_bytes += appended.size_bytes
                    continue
            except Exception as error:
                batch.error = error
            left.append(batch)
        return left, size_bytes


def in_order(dict answers not None, dict found not None):
    cdef list batches = []
    for place, batch in found.items():
        (<list?>answers[(<tuple?>place)[0]]).append((<PartitionBatch?>batch).answer)
        batches.append(batch)
    return batches


def are_plain(list batches not None):
    cdef PartitionBatch batch
    cdef LogBase log
    for one in batches:
        batch = <PartitionBatch?>one
        log = batch.log
        if batch.expected_bytes or (log is not None and not (log._plain_of is log.config and log._is_plain)):
            return False
    return True


def transactional(batches):
    return [batch for batch in batches if (<PartitionBatch?>batch).is_transactional]


def of_one_producer(list batches not None):
    cdef list wanted = []
    cdef PartitionBatch first = None
    cdef PartitionBatch batch
    for one in batches:
        batch = <PartitionBatch?>one
        if batch.error is None and batch.producer_id >= 0:
            if first is None:
                first = batch
            elif batch.producer_id != first.producer_id or batch.producer_epoch != first.producer_epoch:
                return None
            wanted.append(batch)
    return wanted


def refused(list batches not None):
    return [batch for batch in batches if (<PartitionBatch?>batch).error is not None]


def logs_and_sequences(list batches not None):
    return [((<PartitionBatch?>batch).log, (<PartitionBatch?>batch).base_sequence) for batch in batches]


def verify_each(list asked not None, producer_id, int32_t producer_epoch, bint adds, int64_t now_ms):
    cdef list outcomes = []
    cdef list unknown = []
    cdef list refusals = []
    cdef LogBase log
    for one, base_sequence in asked:
        log = <LogBase?>one
        outcome = (<ProducersBase?>log.producers).guard(producer_id, base_sequence, producer_epoch, adds, now_ms)
        outcomes.append(outcome)
        if isinstance(outcome, Exception):
            refusals.append(outcome)
        elif outcome is not None:
            unknown.append(log.key)
    return outcomes, unknown, refusals


def take_guards(list batches not None, list outcomes not None):
    cdef list refused = []
    cdef Py_ssize_t at
    if len(batches) != len(outcomes):
        raise ValueError(f"{len(outcomes)} outcomes of {len(batches)} batches")
    for at in range(len(batches)):
        outcome = outcomes[at]
        if isinstance(outcome, Exception):
            refused.append((batches[at], outcome))
        else:
            (<PartitionBatch?>batches[at]).verification = outcome
    return refused


def commit_each(
    dict logs not None, dict unmarked not None, put, bytearray marker not None, producer_id,
    int32_t producer_epoch, int32_t coordinator_epoch, int transaction_version, int64_t now_ms, list hooks not None
):
    return mark_each(
        logs, unmarked, put, marker, producer_id, producer_epoch, coordinator_epoch, transaction_version, now_ms, hooks
    )


cdef dict mark_each(
    dict logs, dict unmarked, object put, bytearray marker, object producer_id, int32_t producer_epoch,
    int32_t coordinator_epoch, int transaction_version, int64_t now_ms, list hooks
):
    cdef dict failures = {}
    cdef list partitions = list(unmarked)
    cdef Py_ssize_t count = len(partitions)
    cdef Py_ssize_t at = 0
    cdef bint is_left = False
    cdef LogBase log
    cdef object base_offset
    cdef int64_t offset
    try:
        while at < count:
            partition = partitions[at]
            log = logs.get(partition)
            offset = -1
            if log is not None:
                base_offset = log.log_end_offset    # an object, as above
                try:
                    offset = log.append_commit(
                        put, marker, producer_id, producer_epoch, coordinator_epoch, transaction_version, now_ms
                    )
                except (OSError, MemoryError) as error:
                    failures[partition] = log.not_appended(base_offset, error)
            if offset < 0:
                partitions[at] = None       # it stays
                is_left = True
            else:
                for topic, hook in hooks:
                    if topic is None or topic == (<tuple>log.key)[0]:
                        hook(log, producer_id, producer_epoch, True, offset)
            at += 1
    finally:
        # Only now: after an exception the marker may be missing, and a duplicate marker does no harm.
        if at == count and not is_left:
            unmarked.clear()
        else:
            while at:
                at -= 1
                if partitions[at] is not None:
                    del unmarked[partitions[at]]
    return failures

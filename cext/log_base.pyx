"""The end of a partition's log, where nearly all batches are appended in one pass. Contracts are in log_base.pyi."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t

from kafka_shim.cext.batch cimport (
    AT_ATTRIBUTES,
    AT_BASE_OFFSET,
    AT_BASE_SEQUENCE,
    AT_LAST_OFFSET_DELTA,
    AT_LEADER_EPOCH,
    AT_LENGTH,
    AT_MAX_TIMESTAMP,
    AT_PRODUCER_EPOCH,
    AT_PRODUCER_ID,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    LENGTH_END,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    Verdict,
    check_bounds,
    check_header,
)
from kafka_shim.cext.bigendian cimport load_i16, load_i32, load_i64, store_i32, store_i64, store_u16
from kafka_shim.cext.records cimport is_plain, unpacks_plain
from kafka_shim.cext.segment cimport SegmentBase

cdef enum:
    NO_OFFSET = -1
    NO_SEQUENCE = -1
    NO_TIME = -1
    TV2 = 2
    # One producer of a snapshot: id int64, epoch int16, last sequence int32, last offset int64, offset delta int32,
    # timestamp int64, coordinator epoch int32, start of the open transaction int64.
    SNAPSHOT_ENTRY_BYTES = 46


@cython.final
@cython.freelist(64)
cdef class Appended:
    def __init__(
        self, int64_t base_offset, int64_t last_offset, int64_t append_time_ms, int64_t log_start_offset,
        bint duplicate=False, int64_t size_bytes=0, flushed=None
    ):
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
        self.size_bytes = size_bytes
        self.flushed = flushed


@cython.final
@cython.freelist(64)
cdef class Verification:
    cdef int lower_to(self, int32_t base_sequence, int32_t producer_epoch) except -1:
        """Add another waiting batch: the guard keeps the lowest sequence of the newest epoch."""
        if producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, base_sequence)
        elif producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = base_sequence
        return 0


cdef class ProducerBase:
    cdef int64_t _last_sequence(self) except -2:
        cdef Py_ssize_t count = len(self.batches)
        if count == 0:
            return NO_SEQUENCE
        return (<tuple?>self.batches[count - 1])[1]


def encode_producers(list entries not None, Py_ssize_t header_bytes):
    cdef bytearray encoded = bytearray(header_bytes + SNAPSHOT_ENTRY_BYTES * len(entries))
    cdef uint8_t* p = <uint8_t*><char*>encoded + header_bytes
    cdef ProducerBase entry
    cdef tuple batch
    cdef int64_t last_offset
    for one in entries:
        entry = <ProducerBase?>one
        store_i64(p, entry.producer_id)
        store_u16(p + 8, <uint16_t>entry.epoch)
        if entry.batches:
            batch = <tuple?>entry.batches[len(entry.batches) - 1]
            last_offset = batch[3]
            store_i32(p + 10, batch[1])
            store_i64(p + 14, last_offset)
            store_i32(p + 22, <int32_t>(last_offset - <int64_t>batch[2]))
        else:
            store_i32(p + 10, NO_SEQUENCE)
            store_i64(p + 14, NO_OFFSET)
            store_i32(p + 22, 0)
        store_i64(p + 26, entry.last_timestamp_ms)
        store_i32(p + 34, entry.coordinator_epoch)
        store_i64(p + 38, entry.txn_first_offset)
        p += SNAPSHOT_ENTRY_BYTES
    return encoded


cdef class ProducersBase:
    def verify(
        self, int64_t producer_id, int32_t base_sequence, int32_t producer_epoch, bint supports_epoch_bump,
        int64_t now_ms
    ):
        found = self.guard(producer_id, base_sequence, producer_epoch, supports_epoch_bump, now_ms)
        if isinstance(found, Exception):
            raise found
        return found

    cdef object guard(
        self, object producer_id, int32_t base_sequence, int32_t producer_epoch, bint supports_epoch_bump,
        int64_t now_ms
    ):
        cdef ProducerBase entry = self.entries.get(producer_id)
        cdef Verification guard
        if entry is not None:
            if producer_epoch < entry.epoch:
                return self._stale_epoch(producer_epoch, entry)
            if producer_epoch == entry.epoch and entry.txn_first_offset >= 0:
                return None
        guard = self._verifications.get(producer_id)
        if guard is None:
            guard = Verification.__new__(Verification)
            guard.producer_id = producer_id
            guard.lowest_sequence = base_sequence
            guard.producer_epoch = producer_epoch
            guard.supports_epoch_bump = supports_epoch_bump
            guard.created_ms = now_ms
            self._verifications[producer_id] = guard
        else:
            guard.lower_to(base_sequence, producer_epoch)
        return guard

    def _stale_epoch(self, epoch, entry):
        raise NotImplementedError("abstract: the refusal of a batch of an older epoch")

    cdef bint _follows(
        self, ProducerBase entry, object producer_id, int32_t epoch, int32_t sequence, bint is_transactional,
        object verification
    ) except -1:
        """Whether a batch is the next one of its producer beyond doubt."""
        cdef Verification guard = self._verifications.get(producer_id) if self._verifications else None
        cdef bint is_open = entry.txn_first_offset >= 0
        if entry.epoch < 0 or epoch < entry.epoch:
            return False
        if epoch == entry.epoch:
            if sequence != entry._last_sequence() + 1:
                return False
        elif sequence != 0 or is_open:
            return False
        if guard is not None and sequence > guard.lowest_sequence:
            return False
        if not is_transactional:
            return not is_open
        return is_open or (guard is not None and guard is verification)

    cdef int _apply_data(
        self, ProducerBase entry, object producer_id, int32_t epoch, int32_t sequence, bint is_transactional,
        int64_t base_offset, int32_t last_offset_delta, int64_t max_timestamp_ms, Py_ssize_t cached_batches
    ) except -1:
        # Each number is an object only once, also where it is two.
        cdef object first_sequence = sequence
        cdef object last_sequence = first_sequence
        cdef object first_offset = base_offset
        cdef object last_offset = first_offset
        if sequence < 0:
            last_sequence = NO_SEQUENCE
        if last_offset_delta != 0:
            if sequence >= 0:
                last_sequence = (<uint32_t>sequence + <uint32_t>last_offset_delta) & 0x7FFFFFFF
            last_offset = base_offset + last_offset_delta
        if entry.epoch != epoch:
            entry.epoch = epoch
            entry.batches = []
        elif len(entry.batches) == cached_batches:
            del entry.batches[0]
        entry.batches.append((first_sequence, last_sequence, first_offset, last_offset, max_timestamp_ms))
        entry.last_timestamp_ms = max_timestamp_ms
        if is_transactional:
            if entry.txn_first_offset < 0:
                entry.txn_first_offset = base_offset
                self._open[first_offset] = producer_id
            if self._verifications:
                self._verifications.pop(producer_id, None)
        return 0


cdef class EpochsBase:
    pass


cdef int _tell(callback) except -1:
    try:
        callback()
    except MemoryError:
        pass  # its wait ends with its time, or with the next change; what is stored is stored
    return 0


cdef class LogBase:
    cdef bint _is_ready(self) except -1:
        return (
            self._plain_of is self.config
            and not self._waits_for_disk
            and self.sync_error is None
            and not self.is_offline
            and not self.is_closed
            and len(self.segments) > 0
            and self.epochs is not None
            and self.epochs.latest == self.leader_epoch
        )

    cdef Appended _appended(self, int64_t base_offset, int64_t size_bytes):
        cdef Appended appended = Appended.__new__(Appended)
        appended.base_offset = base_offset
        appended.last_offset = self.log_end_offset - 1
        appended.append_time_ms = NO_TIME
        appended.log_start_offset = self.log_start_offset
        appended.size_bytes = size_bytes
        return appended

    cdef int _advance_to(self, int64_t end_offset, int64_t size_bytes, int64_t now_ms) except -1:
        self.appended_records += end_offset - self.log_end_offset
        self.log_end_offset = (<ProducersBase>self.producers).next_offset = end_offset
        self.appended_bytes += size_bytes
        if self._readers is not None:
            self._wake()
        if self.unflushed_since_ms < 0:
            self.unflushed_since_ms = now_ms
            try:
                self.want_flush()
            except MemoryError:
                self._services.has_lost_wishes = True   # what is stored is stored
        return 0

    cdef Appended append_data(
        self, object put, object records, int64_t now_ms, object verification, Py_ssize_t cached_batches
    ):
        cdef Py_buffer view
        cdef int64_t base_offset
        PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
        try:
            if view.readonly:
                return None
            base_offset = self.append_at(
                put, records, 0, <uint8_t*>view.buf, view.len, now_ms, verification, cached_batches, False
            )
            return None if base_offset < 0 else self._appended(base_offset, view.len)
        finally:
            PyBuffer_Release(&view)

    cdef int64_t append_at(
        self, object put, object whole, Py_ssize_t start, uint8_t* p, int64_t size_bytes, int64_t now_ms,
        object verification, Py_ssize_t cached_batches, bint may_be_compressed
    ) except -2:
        cdef int64_t base_offset = self.log_end_offset
        cdef object producer_id = None
        cdef int64_t max_timestamp_ms
        cdef int32_t epoch
        cdef int32_t sequence
        cdef int32_t last_offset_delta
        cdef int16_t attributes
        cdef bint is_transactional
        cdef bint is_good
        cdef ProducersBase states = <ProducersBase?>self.producers
        cdef ProducerBase entry = None
        cdef SegmentBase segment
        if not self._is_plain or not self._is_ready():
            return NO_OFFSET
        segment = <SegmentBase?>self.segments[len(self.segments) - 1]
        # What costs little comes first: the CRC and the walk of a large batch would else be done twice.
        if size_bytes < BATCH_HEADER_SIZE or not segment.has_room(size_bytes, self.config):
            return NO_OFFSET
        epoch = load_i16(p + AT_PRODUCER_EPOCH)
        sequence = load_i32(p + AT_BASE_SEQUENCE)
        last_offset_delta = load_i32(p + AT_LAST_OFFSET_DELTA)
        max_timestamp_ms = load_i64(p + AT_MAX_TIMESTAMP)
        attributes = load_i16(p + AT_ATTRIBUTES)
        is_transactional = (attributes & TRANSACTIONAL_FLAG) != 0
        if load_i64(p + AT_PRODUCER_ID) >= 0:
            producer_id = load_i64(p + AT_PRODUCER_ID)
            entry = states.entries.get(producer_id)
            if entry is None or not states._follows(
                entry, producer_id, epoch, sequence, is_transactional, verification
            ):
                return NO_OFFSET
        if may_be_compressed and attributes & CODEC_MASK:
            is_good = unpacks_plain(
                p, size_bytes, self._most_message_bytes, self._needs_keys, now_ms, self._before_max_ms,
                self._after_max_ms,
            )
        else:
            is_good = is_plain(
                p, size_bytes, self._most_message_bytes, self._needs_keys, now_ms, self._before_max_ms,
                self._after_max_ms,
            )
        if not is_good or not segment.takes(
            size_bytes, base_offset + last_offset_delta, max_timestamp_ms, self.config
        ):
            return NO_OFFSET
        store_i64(p + AT_BASE_OFFSET, base_offset)
        store_i32(p + AT_LEADER_EPOCH, self.leader_epoch)
        segment.put_at(put, whole, start, p, size_bytes, base_offset + last_offset_delta, max_timestamp_ms)
        if entry is not None:
            states._apply_data(
                entry, producer_id, epoch, sequence, is_transactional, base_offset, last_offset_delta,
                max_timestamp_ms, cached_batches,
            )
        self._advance_to(base_offset + last_offset_delta + 1, size_bytes, now_ms)
        return base_offset

    def put_own(self, put, bytearray batch not None, int64_t now_ms, bint is_limited, Py_ssize_t cached_batches):
        return self.append_own_batch(put, batch, now_ms, is_limited, cached_batches)

    cdef Appended append_own_batch(
        self, object put, bytearray batch, int64_t now_ms, bint is_limited, Py_ssize_t cached_batches
    ):
        cdef uint8_t* p = <uint8_t*><char*>batch
        cdef int64_t size_bytes = len(batch)
        cdef int64_t base_offset = self.log_end_offset
        cdef int64_t producer_id
        cdef int64_t last_offset
        cdef int64_t max_timestamp_ms
        cdef int32_t epoch
        cdef int16_t attributes
        cdef ProducersBase states = <ProducersBase?>self.producers
        cdef ProducerBase entry = None
        cdef SegmentBase segment
        if (
            size_bytes < BATCH_HEADER_SIZE
            or not self._is_ready()
            or (is_limited and size_bytes > self._most_message_bytes)
            or check_bounds(p, size_bytes) != Verdict.OK
            or LENGTH_END + <int64_t>load_i32(p + AT_LENGTH) != size_bytes
            or check_header(p) != Verdict.OK
        ):
            return None
        attributes = load_i16(p + AT_ATTRIBUTES)
        producer_id = load_i64(p + AT_PRODUCER_ID)
        epoch = load_i16(p + AT_PRODUCER_EPOCH)
        if attributes & LOG_APPEND_TIME_FLAG:
            return None
        if producer_id >= 0:
            entry = states.entries.get(producer_id)
            if entry is None or not attributes & TRANSACTIONAL_FLAG or epoch < entry.epoch:
                return None
        segment = <SegmentBase?>self.segments[len(self.segments) - 1]
        last_offset = base_offset + load_i32(p + AT_LAST_OFFSET_DELTA)
        max_timestamp_ms = load_i64(p + AT_MAX_TIMESTAMP)
        if not segment.takes(size_bytes, last_offset, max_timestamp_ms, self.config):
            return None
        store_i64(p + AT_BASE_OFFSET, base_offset)
        store_i32(p + AT_LEADER_EPOCH, self.leader_epoch)
        segment.put_at(put, batch, 0, p, size_bytes, last_offset, max_timestamp_ms)
        if entry is not None:
            states._apply_data(
                entry, producer_id, epoch, load_i32(p + AT_BASE_SEQUENCE), True, base_offset,
                load_i32(p + AT_LAST_OFFSET_DELTA), max_timestamp_ms, cached_batches,
            )
        self._advance_to(last_offset + 1, size_bytes, now_ms)
        return self._appended(base_offset, size_bytes)

    def commit_plain(
        self, put, bytearray marker not None, int64_t producer_id, int32_t producer_epoch, int32_t coordinator_epoch,
        int transaction_version, int64_t now_ms
    ):
        cdef int64_t offset = self.append_commit(
            put, marker, producer_id, producer_epoch, coordinator_epoch, transaction_version, now_ms
        )
        return None if offset < 0 else self._appended(offset, len(marker))

    cdef int64_t append_commit(
        self, object put, bytearray marker, object producer_id, int32_t producer_epoch, int32_t coordinator_epoch,
        int transaction_version, int64_t now_ms
    ) except -2:
        cdef uint8_t* p = <uint8_t*><char*>marker
        cdef int64_t size_bytes = len(marker)
        cdef int64_t offset = self.log_end_offset
        cdef int64_t first_offset
        cdef ProducersBase states = <ProducersBase?>self.producers
        cdef ProducerBase entry
        cdef SegmentBase segment
        if size_bytes < BATCH_HEADER_SIZE or self._is_log_append_time or not self._is_ready():
            return NO_OFFSET
        entry = states.entries.get(producer_id)
        if (
            entry is None
            or entry.txn_first_offset < 0
            or producer_epoch < entry.epoch
            or (producer_epoch == entry.epoch and transaction_version >= TV2)
            or coordinator_epoch < entry.coordinator_epoch
            or (states._verifications and producer_id in states._verifications)
        ):
            return NO_OFFSET
        segment = <SegmentBase?>self.segments[len(self.segments) - 1]
        if not segment.takes(size_bytes, offset, now_ms, self.config):
            return NO_OFFSET
        store_i64(p + AT_BASE_OFFSET, offset)
        store_i32(p + AT_LEADER_EPOCH, self.leader_epoch)
        segment.put_at(put, marker, 0, p, size_bytes, offset, now_ms)
        if entry.epoch != producer_epoch:
            entry.epoch = producer_epoch
            entry.batches = []
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = now_ms
        first_offset = entry.txn_first_offset
        entry.txn_first_offset = NO_OFFSET
        states._open.pop(first_offset, None)
        self._advance_to(offset + 1, size_bytes, now_ms)
        return offset

    def not_appended(self, int64_t base_offset, error):
        raise NotImplementedError("abstract: what a failed append at this offset leads to")

    def _wake(self):
        cdef dict readers = self._readers
        if readers is None:
            return
        try:
            for callback in tuple(readers):
                _tell(callback)
        except MemoryError:  # of the copy
            for callback in readers:
                _tell(callback)

    def want_flush(self):
        raise NotImplementedError("abstract: a log asks for its periodic fsync here")

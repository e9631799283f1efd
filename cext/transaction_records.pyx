"""The state of a transactional id, its record, and what each transition of it does. Contracts are in
transaction_records.pyi."""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafka_shim.cext.batch cimport Header, write_batch
from kafka_shim.cext.bigendian cimport store_i16, store_i32, store_i64
from kafka_shim.cext.varint cimport size_varint, zigzag32
from kafka_shim.cext.wire cimport Out, out_free, out_init, write_i8, write_raw, write_uvarint

cdef enum:
    HEAD_BYTES = 17             # version, producer id and epoch, timeout, status
    TIMES_BYTES = 16
    LONG_TAG_BYTES = 10         # tag, size, value
    SHORT_TAG_BYTES = 4
    PREVIOUS_PRODUCER_ID = 0    # tags
    NEXT_PRODUCER_ID = 1
    CLIENT_VERSION = 2
    NO_PRODUCER_ID = -1
    NO_SEQUENCE = -1
    MAX_EPOCH = 0x7FFF
    EMPTY = 0                   # states
    ONGOING = 1
    MOST_FORMS = 1024


cdef class TransactionBase:
    def __init__(
        self, str transactional_id not None, int64_t producer_id, int64_t previous_producer_id,
        int64_t next_producer_id, int32_t producer_epoch, int32_t last_producer_epoch, int32_t timeout_ms, state,
        frozenset partitions not None, int64_t start_ms, int64_t last_update_ms, int32_t client_version
    ):
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.last_producer_epoch = last_producer_epoch
        self.timeout_ms = timeout_ms
        self.state = state
        self.partitions = partitions
        self.start_ms = start_ms
        self.last_update_ms = last_update_ms
        self.client_version = client_version

    def moved(self, state not None, frozenset partitions not None, int64_t now_ms, int32_t client_version):
        return self.moved_to(state, partitions, now_ms, client_version)

    cdef TransactionBase moved_to(self, object state, frozenset partitions, int64_t now_ms, int32_t client_version):
        cdef type kind = type(self)
        cdef TransactionBase txn = kind.__new__(kind)
        txn.transactional_id = self.transactional_id
        txn.producer_id = txn.previous_producer_id = self.producer_id
        txn.next_producer_id = self.next_producer_id
        txn.producer_epoch = self.producer_epoch
        txn.last_producer_epoch = self.last_producer_epoch
        txn.timeout_ms = self.timeout_ms
        txn.state = state
        txn.partitions = partitions
        txn.start_ms = self.start_ms
        txn.last_update_ms = now_ms
        txn.client_version = client_version
        return txn


cdef uint8_t* _put_long_tag(uint8_t* p, uint8_t tag, int64_t value) noexcept nogil:
    p[0], p[1] = tag, 8
    store_i64(p + 2, value)
    return p + LONG_TAG_BYTES


def encode_value(TransactionBase txn not None, int16_t version, bytes partitions not None):
    cdef Py_ssize_t partitions_bytes = PyBytes_GET_SIZE(partitions)
    cdef int16_t status = txn.state
    cdef uint8_t tag_count = 0
    cdef bytes value
    cdef uint8_t* p
    cdef uint8_t* tags
    if not (-MAX_EPOCH - 1 <= txn.producer_epoch <= MAX_EPOCH and -MAX_EPOCH - 1 <= txn.client_version <= MAX_EPOCH):
        raise ValueError(f"epoch {txn.producer_epoch}, client version {txn.client_version}")
    if not 0 <= status < 0x80:
        raise ValueError(f"status {status}")
    value = PyBytes_FromStringAndSize(
        NULL, HEAD_BYTES + partitions_bytes + TIMES_BYTES + (0 if version == 0 else 1 + _tags_bytes(txn))
    )
    p = <uint8_t*>PyBytes_AS_STRING(value)
    store_i16(p, version)
    store_i64(p + 2, txn.producer_id)
    store_i16(p + 10, <int16_t>txn.producer_epoch)
    store_i32(p + 12, txn.timeout_ms)
    p[16] = <uint8_t>status
    p += HEAD_BYTES
    memcpy(p, PyBytes_AS_STRING(partitions), <size_t>partitions_bytes)
    p += partitions_bytes
    store_i64(p, txn.last_update_ms)
    store_i64(p + 8, txn.start_ms)
    if version == 0:
        return value
    tags = p + TIMES_BYTES
    p = tags + 1
    if txn.previous_producer_id != NO_PRODUCER_ID:
        tag_count += 1
        p = _put_long_tag(p, PREVIOUS_PRODUCER_ID, txn.previous_producer_id)
    if txn.next_producer_id != NO_PRODUCER_ID:
        tag_count += 1
        p = _put_long_tag(p, NEXT_PRODUCER_ID, txn.next_producer_id)
    if txn.client_version != 0:
        tag_count += 1
        p[0], p[1] = CLIENT_VERSION, 2
        store_i16(p + 2, <int16_t>txn.client_version)
    tags[0] = tag_count
    return value


def encode_batch(TransactionBase txn not None, int16_t version, bytes partitions not None, bytes key not None):
    return _batch(txn, version, partitions, key)


cdef bytearray _batch(TransactionBase txn, int16_t version, bytes partitions, bytes key):
    cdef bytes value = encode_value(txn, version, partitions)
    cdef int64_t now_ms = txn.last_update_ms
    cdef int32_t key_bytes = <int32_t>PyBytes_GET_SIZE(key)
    cdef int32_t value_bytes = <int32_t>PyBytes_GET_SIZE(value)
    cdef Header header = Header(
        0, 0, 0, 0, now_ms, now_ms, NO_PRODUCER_ID, NO_PRODUCER_ID, NO_SEQUENCE, 1
    )
    cdef Out out
    out_init(&out)
    try:
        # Attributes, the differences of timestamp and offset and the number of headers are 0, which is a byte each.
        write_uvarint(&out, zigzag32(4 + size_varint(key_bytes) + key_bytes + size_varint(value_bytes) + value_bytes))
        write_i8(&out, 0)
        write_i8(&out, 0)
        write_i8(&out, 0)
        write_uvarint(&out, zigzag32(key_bytes))
        write_raw(&out, PyBytes_AS_STRING(key), key_bytes)
        write_uvarint(&out, zigzag32(value_bytes))
        write_raw(&out, PyBytes_AS_STRING(value), value_bytes)
        write_i8(&out, 0)
        return write_batch(&header, PyMemoryView_FromMemory(<char*>out.data, out.size_bytes, PyBUF_READ))
    finally:
        out_free(&out)


cdef class Batches:
    def __init__(self, form_of not None, Py_ssize_t most_partitions):
        self._form_of = form_of
        self._most_partitions = most_partitions
        self._forms = {}

    def encode(self, bytes key not None, TransactionBase txn not None, int16_t version):
        return self.batch_of(key, txn, version)

    cdef bytearray batch_of(self, bytes key, TransactionBase txn, int16_t version):
        # Of an empty state no partitions are recorded.
        if version == 0 or not 0 < len(txn.partitions) <= self._most_partitions or <int>txn.state == EMPTY:
            return _batch(txn, version, <bytes?>self._form_of(txn, version), key)
        form = self._forms.get(txn.partitions)
        if form is None:
            if len(self._forms) == MOST_FORMS:
                self._forms.clear()
            form = self._forms[txn.partitions] = self._form_of(txn, version)
        return _batch(txn, version, <bytes?>form, key)


def note_plain(events_by_id not None, TransactionBase txn not None, Py_ssize_t most_partitions):
    return note_transition(events_by_id, txn, most_partitions)


cdef bint note_transition(object events_by_id, TransactionBase txn, Py_ssize_t most_partitions) except -1:
    cdef TransactionBase last
    cdef Py_ssize_t count
    events = events_by_id.get(txn.transactional_id)
    if events is None or len(txn.partitions) > most_partitions:
        return False
    count = len(events)
    if count == 0:
        return False
    events_by_id.move_to_end(txn.transactional_id)
    if <int>txn.state == ONGOING:
        newest = events[count - 1]
        if isinstance(newest, TransactionBase):
            last = <TransactionBase>newest
            if <int>last.state == ONGOING:
                events.pop()
    events.append(txn)
    return True


cdef Py_ssize_t _tags_bytes(TransactionBase txn) noexcept:
    return (
        LONG_TAG_BYTES * (txn.previous_producer_id != NO_PRODUCER_ID)
        + LONG_TAG_BYTES * (txn.next_producer_id != NO_PRODUCER_ID)
        + SHORT_TAG_BYTES * (txn.client_version != 0)
    )

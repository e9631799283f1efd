"""The state of a transactional id and the value of its record. Contracts are in transaction_records.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafka_shim.cext.bigendian cimport store_i16, store_i32, store_i64

cdef enum:
    HEAD_BYTES = 17             # version, producer id and epoch, timeout, status
    TIMES_BYTES = 16
    LONG_TAG_BYTES = 10         # tag, size, value
    SHORT_TAG_BYTES = 4
    PREVIOUS_PRODUCER_ID = 0    # tags
    NEXT_PRODUCER_ID = 1
    CLIENT_VERSION = 2
    NO_PRODUCER_ID = -1
    MAX_EPOCH = 0x7FFF


cdef class TransactionEnd:
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


cdef uint8_t* _put_long_tag(uint8_t* p, uint8_t tag, int64_t value) noexcept nogil:
    p[0], p[1] = tag, 8
    store_i64(p + 2, value)
    return p + LONG_TAG_BYTES


def encode_value(TransactionEnd txn not None, int16_t version, bytes partitions not None):
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


cdef Py_ssize_t _tags_bytes(TransactionEnd txn) noexcept:
    return (
        LONG_TAG_BYTES * (txn.previous_producer_id != NO_PRODUCER_ID)
        + LONG_TAG_BYTES * (txn.next_producer_id != NO_PRODUCER_ID)
        + SHORT_TAG_BYTES * (txn.client_version != 0)
    )

"""The per-record work of compaction: map each key to its last offset, then select and copy the records that are
kept."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from kafka_shim.cext.batch cimport Batch, Header, Verdict, header_of, write_batch
from kafka_shim.cext.records cimport RecordFields, read_record
from kafka_shim.cext.varint cimport MAX_VARINT32, MAX_VARINT64, read_varint, read_varlong, write_varint, write_varlong

from kafka_shim.cext.batch import BatchError

cdef extern from "siphash.h" nogil:
    void siphash128(const uint8_t* key, const uint8_t* data, size_t size, uint64_t* low, uint64_t* high)

cdef enum:
    FIRST_SLOTS = 1024


ctypedef struct Slot:
    uint64_t low
    uint64_t high
    int64_t offset_and_one      # 0: free


@cython.final
cdef class OffsetMap:
    cdef Slot* slots
    cdef int64_t slot_count     # a power of two
    cdef int64_t most_slots
    cdef double load_factor
    cdef uint8_t[16] secret
    cdef readonly int64_t count
    cdef readonly int64_t capacity
    cdef public int64_t latest_offset

    def __cinit__(self, int64_t limit_bytes, double load_factor, bytes secret not None):
        cdef int i
        if len(secret) != 16:
            raise ValueError("the secret has 16 bytes")
        if not 0 < load_factor < 1:
            raise ValueError("the load factor is between 0 and 1")
        for i in range(16):
            self.secret[i] = secret[i]
        self.load_factor = load_factor
        self.most_slots = FIRST_SLOTS
        while self.most_slots * 2 * <int64_t>sizeof(Slot) <= limit_bytes:
            self.most_slots *= 2
        self.capacity = <int64_t>(self.most_slots * load_factor)
        self.slot_count = FIRST_SLOTS
        self.slots = <Slot*>calloc(<size_t>self.slot_count, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError
        self.latest_offset = -1

    def __dealloc__(self):
        free(self.slots)

    def find(self, bytes key not None):
        return self.get(<const uint8_t*><const char*>key, len(key))

    cdef Slot* slot_of(self, uint64_t low, uint64_t high) noexcept nogil:
        """Return the slot of a digest, or the free slot for it."""
        cdef uint64_t mask = <uint64_t>self.slot_count - 1
        cdef uint64_t at = low & mask
        while self.slots[at].offset_and_one != 0 and (self.slots[at].low != low or self.slots[at].high != high):
            at = (at + 1) & mask
        return &self.slots[at]

    cdef int64_t get(self, const uint8_t* key, Py_ssize_t size) noexcept nogil:
        cdef uint64_t low = 0
        cdef uint64_t high = 0
        siphash128(self.secret, key, <size_t>size, &low, &high)
        return self.slot_of(low, high).offset_and_one - 1

    cdef int put(self, const uint8_t* key, Py_ssize_t size, int64_t offset) noexcept nogil:
        """Return 1 if the key was stored, 0 if the map is full, -1 if there is no memory."""
        cdef uint64_t low = 0
        cdef uint64_t high = 0
        cdef Slot* slot
        # As in Kafka, a full map accepts no key, not even a known one. The following records belong to the next round.
        if self.count >= self.capacity:
            return 0
        if self.count >= <int64_t>(self.slot_count * self.load_factor) and self.grow() < 0:
            return -1
        siphash128(self.secret, key, <size_t>size, &low, &high)
        slot = self.slot_of(low, high)
        if slot.offset_and_one == 0:
            slot.low = low
            slot.high = high
            self.count += 1
        slot.offset_and_one = offset + 1
        # With every record, for a map may be full inside a batch, and the next round goes on from there.
        self.latest_offset = offset
        return 1

    cdef int grow(self) noexcept nogil:
        cdef Slot* old = self.slots
        cdef int64_t old_count = self.slot_count
        cdef int64_t i
        cdef Slot* grown = <Slot*>calloc(<size_t>(old_count * 2), sizeof(Slot))
        if grown == NULL:
            return -1
        self.slots = grown
        self.slot_count = old_count * 2
        for i in range(old_count):
            if old[i].offset_and_one != 0:
                self.slot_of(old[i].low, old[i].high)[0] = old[i]
        free(old)
        return 0


@cython.final
cdef class _View:
    """A buffer held open."""

    cdef Py_buffer view
    cdef const uint8_t* start
    cdef const uint8_t* end

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef _View _open(object buffer):
    cdef _View view = _View.__new__(_View)
    PyObject_GetBuffer(buffer, &view.view, PyBUF_SIMPLE)
    view.start = <const uint8_t*>view.view.buf
    view.end = view.start + view.view.len
    return view


def index_records(OffsetMap offsets not None, records, Batch batch not None, int64_t from_offset):
    cdef _View view = _open(records)
    cdef const uint8_t* p = view.start
    cdef RecordFields fields
    cdef Verdict verdict = Verdict.OK
    cdef int32_t left = batch.record_count
    cdef int64_t offset
    cdef int status = 1
    with nogil:
        while left > 0 and status == 1:
            verdict = read_record(p, view.end, &fields)
            if verdict != Verdict.OK:
                break
            offset = batch.base_offset + fields.offset_delta
            if fields.key_size >= 0 and offset >= from_offset:
                status = offsets.put(fields.key, fields.key_size, offset)
            p = fields.end
            left -= 1
    if verdict != Verdict.OK:
        raise BatchError(verdict, batch.position, batch.record_count - left)
    if status < 0:
        raise MemoryError
    return status == 1


cdef inline bint _stays(
    OffsetMap offsets, const RecordFields* fields, int64_t base_offset, bint keep_tombstones
) noexcept nogil:
    cdef int64_t offset = base_offset + fields.offset_delta
    if offset > offsets.latest_offset:
        return True
    if fields.key_size < 0 or offset < offsets.get(fields.key, fields.key_size):
        return False
    return fields.value_size >= 0 or keep_tombstones


cdef class Survey:
    cdef readonly int32_t read_count
    cdef readonly int32_t kept_count
    cdef readonly int64_t max_timestamp
    cdef readonly bint has_tombstones


def survey(OffsetMap offsets not None, records, Batch batch not None, bint keep_tombstones):
    cdef _View view = _open(records)
    cdef const uint8_t* p = view.start
    cdef Survey found = Survey.__new__(Survey)
    cdef RecordFields fields
    cdef Verdict verdict = Verdict.OK
    cdef int64_t timestamp
    found.max_timestamp = -1
    with nogil:
        while found.read_count < batch.record_count:
            verdict = read_record(p, view.end, &fields)
            if verdict != Verdict.OK:
                break
            if _stays(offsets, &fields, batch.base_offset, keep_tombstones):
                found.kept_count += 1
                found.has_tombstones |= fields.value_size < 0
                timestamp = <int64_t>(<uint64_t>batch.base_timestamp + <uint64_t>fields.timestamp_delta)
                if timestamp > found.max_timestamp:
                    found.max_timestamp = timestamp
            p = fields.end
            found.read_count += 1
    if verdict != Verdict.OK:
        raise BatchError(verdict, batch.position, found.read_count)
    return found


def copy_kept(
    OffsetMap offsets, records, Batch batch not None, bint keep_tombstones, int64_t base_timestamp
):
    cdef _View view = _open(records)
    cdef const uint8_t* p = view.start
    cdef const uint8_t* rest
    cdef RecordFields fields
    cdef Verdict verdict = Verdict.OK
    cdef bint all_stay = offsets is None
    cdef int64_t shift = <int64_t>(<uint64_t>batch.base_timestamp - <uint64_t>base_timestamp)
    cdef int64_t room
    cdef int64_t ignored = 0
    cdef int32_t length = 0
    cdef int32_t left = batch.record_count
    cdef uint8_t[MAX_VARINT64 + 1] head
    cdef int64_t head_size
    cdef uint8_t* out
    cdef uint8_t* start
    cdef bytearray copied = bytearray()
    # A new base timestamp changes the timestamp deltas and the record lengths, so each may take its maximum size. A
    # false record count cannot cause a larger allocation than the bytes allow.
    room = view.view.len + min(<int64_t>batch.record_count, <int64_t>view.view.len) * (MAX_VARINT32 + MAX_VARINT64)
    PyByteArray_Resize(copied, room)
    start = out = <uint8_t*>PyByteArray_AS_STRING(copied)
    with nogil:
        while left > 0:
            verdict = read_record(p, view.end, &fields)
            if verdict != Verdict.OK:
                break
            if all_stay or _stays(offsets, &fields, batch.base_offset, keep_tombstones):
                if shift == 0:
                    memcpy(out, p, <size_t>(fields.end - p))
                    out += fields.end - p
                else:
                    rest = read_varint(p, fields.end, &length)
                    head[0] = rest[0]
                    rest = read_varlong(rest + 1, fields.end, &ignored)
                    head_size = write_varlong(
                        head + 1, <int64_t>(<uint64_t>fields.timestamp_delta + <uint64_t>shift)
                    ) - head
                    out = write_varint(out, <int32_t>(head_size + (fields.end - rest)))
                    memcpy(out, head, <size_t>head_size)
                    out += head_size
                    memcpy(out, rest, <size_t>(fields.end - rest))
                    out += fields.end - rest
            p = fields.end
            left -= 1
    if verdict != Verdict.OK:
        raise BatchError(verdict, batch.position, batch.record_count - left)
    PyByteArray_Resize(copied, out - start)
    return copied


def seal(
    records,
    Batch batch not None,
    int16_t attributes,
    int64_t base_timestamp,
    int64_t max_timestamp,
    int32_t record_count,
):
    cdef Header header = header_of(batch)
    header.attributes = attributes
    header.base_timestamp = base_timestamp
    header.max_timestamp = max_timestamp
    header.record_count = record_count
    return write_batch(&header, records)

"""A ListOffsets that asks for the ends of partitions, from frame to frame. Contracts are in plain_list_offsets.pyi."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from kafka_shim.cext.bigendian cimport load_i64
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.log_base cimport LogBase, ProducersBase
from kafka_shim.cext.plain_api cimport (
    LONG,
    PlainLookup,
    Reader,
    begin_answer,
    end_answer,
    has_no_tags,
    take,
    take_i32,
    take_length,
    take_text,
    text_of,
)
from kafka_shim.cext.wire cimport (
    Out,
    write_i8,
    write_i16,
    write_i32,
    write_i64,
    write_long_length,
    write_raw,
    write_short_length,
)

cdef enum:
    NONE = -1                   # no replica, no epoch, no timestamp
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
    LATEST = -1
    EARLIEST = -2
    # Versions with a new field, or another form.
    ISOLATION_LEVEL = 2
    LEADER_EPOCHS = 4
    FLEXIBLE = 6
    TIMEOUT = 10

# One partition that the request names.
cdef struct Asked:
    int32_t partition
    int32_t leader_epoch
    int64_t timestamp


cdef bint _read_partition(Reader* c, Asked* asked, int version) noexcept nogil:
    asked.leader_epoch = NONE
    if not take_i32(c, &asked.partition):
        return False
    if version >= LEADER_EPOCHS and not take_i32(c, &asked.leader_epoch):
        return False
    if not take(c, 8):
        return False
    asked.timestamp = load_i64(c.at - 8)
    return EARLIEST <= asked.timestamp <= LATEST and has_no_tags(c, version >= FLEXIBLE)


cdef bint _read_isolation(Reader* c, int version, bint* is_committed) noexcept nogil:
    """Of a request of a consumer."""
    cdef int32_t replica_id = 0
    cdef int8_t level = READ_UNCOMMITTED
    if not take_i32(c, &replica_id) or replica_id != NONE:
        return False
    if version >= ISOLATION_LEVEL:
        if not take(c, 1):
            return False
        level = <int8_t>(c.at - 1)[0]
    is_committed[0] = level == READ_COMMITTED
    return READ_UNCOMMITTED <= level <= READ_COMMITTED


cdef class PlainListOffsets(PlainLookup):
    cdef object _answer(self, object broker, RequestHeader* header, Reader* c, Out* out):
        cdef Py_ssize_t count = _write_answer(out, c, header, <dict?>broker.logs.partitions.loaded)
        if count < 0:
            return None
        self.answered = count
        return end_answer(out)


cdef Py_ssize_t _write_answer(Out* out, Reader* c, RequestHeader* header, dict loaded) except -2:
    """The answer is written as the request is read. Returns the number of partitions, or -1 if there is something to
    decide."""
    cdef int version = header.api_version
    cdef bint is_flexible = version >= FLEXIBLE
    cdef bint is_committed = False
    cdef const uint8_t* text = NULL
    cdef int32_t text_bytes = 0, topics = 0, timeout_ms = 0
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t of_topic
    cdef set names = set()
    if not _read_isolation(c, version, &is_committed):
        return -1
    if not take_length(c, is_flexible, LONG, &topics) or topics < 1:
        return -1
    begin_answer(out, header, is_flexible)
    if version >= ISOLATION_LEVEL:
        write_i32(out, 0)       # throttle time
    write_long_length(out, is_flexible, topics)
    for _ in range(topics):
        if not take_text(c, is_flexible, &text, &text_bytes) or text_bytes < 1:
            return -1
        name = text_of(text, text_bytes)
        names.add(name)
        write_short_length(out, is_flexible, text_bytes)
        write_raw(out, text, text_bytes)
        of_topic = _write_topic(out, c, version, name, loaded, is_committed)
        if of_topic < 0:
            return -1
        count += of_topic
    if version >= TIMEOUT and not take_i32(c, &timeout_ms):
        return -1
    # A topic that is named twice is answered once.
    if len(names) != topics or not has_no_tags(c, is_flexible):
        return -1
    if is_flexible:
        write_i8(out, 0)
    return count


cdef Py_ssize_t _write_topic(Out* out, Reader* c, int version, str name, dict loaded, bint is_committed) except -2:
    """The partitions of one topic. Returns their number, or -1."""
    cdef bint is_flexible = version >= FLEXIBLE
    cdef int32_t partitions = 0
    cdef Asked asked
    cdef set seen = None
    if not take_length(c, is_flexible, LONG, &partitions) or partitions < 1:
        return -1
    write_long_length(out, is_flexible, partitions)
    if partitions > 1:
        seen = set()
    for _ in range(partitions):
        if not _read_partition(c, &asked, version):
            return -1
        if seen is not None:
            seen.add(asked.partition)
        found = loaded.get((name, asked.partition))
        if found is None or not _write_partition(out, &asked, <LogBase?>found, version, is_committed):
            return -1
        if is_flexible:
            write_i8(out, 0)
    # A partition that is named twice has an error.
    if (seen is not None and len(seen) != partitions) or not has_no_tags(c, is_flexible):
        return -1
    if is_flexible:
        write_i8(out, 0)
    return partitions


cdef bint _write_partition(Out* out, Asked* asked, LogBase log, int version, bint is_committed) except -1:
    cdef int32_t leader_epoch = log.leader_epoch
    cdef int64_t offset = log.log_end_offset
    if log.is_offline or (asked.leader_epoch != NONE and asked.leader_epoch != leader_epoch):
        return False
    if asked.timestamp == EARLIEST:
        found = log.earliest()
        offset, leader_epoch = found.offset, found.leader_epoch
    elif is_committed and (<ProducersBase?>log.producers)._open:
        offset = log.last_stable_offset
    write_i32(out, asked.partition)
    write_i16(out, 0)           # no error
    write_i64(out, NONE)        # timestamp
    write_i64(out, offset)
    if version >= LEADER_EPOCHS:
        write_i32(out, leader_epoch)
    return True

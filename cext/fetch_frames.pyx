"""From the frame of a Fetch to fields in C, and from what was read to the frame of its answer."""

from libc.stdint cimport int8_t, int32_t, uint8_t
from libc.string cimport memcmp

from kafka_shim.cext.bigendian cimport load_i64
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport (
    LONG,
    Reader,
    begin_answer,
    end_answer,
    has_no_tags,
    take,
    take_i32,
    take_length,
    take_text,
)
from kafka_shim.cext.wire cimport (
    Out,
    out_free,
    out_init,
    reserve,
    write_i8,
    write_i16,
    write_i32,
    write_i64,
    write_long_length,
    write_raw,
    write_short_length,
)

cdef enum:
    # Versions with a new field, or another form.
    LOG_START_OFFSET = 5
    SESSIONS = 7
    LEADER_EPOCHS = 9
    RACKS = 11
    FLEXIBLE = 12
    NO_REPLICA_ID = 15


cdef bint _read_topic(Reader* c, const uint8_t** topic, int32_t* size_bytes, int version) noexcept nogil:
    if version >= TOPIC_IDS:
        topic[0], size_bytes[0] = c.at, UUID_BYTES
        return take(c, UUID_BYTES)
    return take_text(c, version >= FLEXIBLE, topic, size_bytes) and size_bytes[0] > 0


cdef bint _read_partition(Reader* c, Asked* asked, int version) noexcept nogil:
    asked.current_leader_epoch = asked.last_fetched_epoch = NONE
    if not take_i32(c, &asked.partition):
        return False
    if version >= LEADER_EPOCHS and not take_i32(c, &asked.current_leader_epoch):
        return False
    if not take(c, 8):
        return False
    asked.fetch_offset = load_i64(c.at - 8)
    if version >= FLEXIBLE and not take_i32(c, &asked.last_fetched_epoch):
        return False
    # The log start offset is a follower's.
    return (
        (version < LOG_START_OFFSET or take(c, 8))
        and take_i32(c, &asked.max_bytes)
        and has_no_tags(c, version >= FLEXIBLE)
    )


cdef bint _is_named(Request* request, Asked* asked) noexcept nogil:
    """Whether the request has named this topic and partition before."""
    cdef Asked* before
    cdef int at
    for at in range(request.count):
        before = &request.asked[at]
        if (
            before.partition == asked.partition
            and before.topic_bytes == asked.topic_bytes
            and memcmp(before.topic, asked.topic, <size_t>asked.topic_bytes) == 0
        ):
            return True
    return False


cdef bint read_request(Reader* c, Request* request, int version) noexcept nogil:
    cdef bint is_flexible = version >= FLEXIBLE
    cdef int32_t replica_id = NONE
    cdef int32_t topics = 0
    cdef int32_t partitions = 0
    cdef int32_t forgotten = 0
    cdef const uint8_t* text = NULL
    cdef int32_t text_bytes = 0
    cdef Asked* asked
    request.count = 0
    request.session_id, request.session_epoch = NO_SESSION, NONE
    if version < NO_REPLICA_ID and (not take_i32(c, &replica_id) or replica_id != NONE):
        return False
    if not (
        take_i32(c, &request.max_wait_ms) and take_i32(c, &request.min_bytes) and take_i32(c, &request.max_bytes)
        and take(c, 1)
    ):
        return False
    request.isolation_level = <int8_t>(c.at - 1)[0]
    if version >= SESSIONS and not (take_i32(c, &request.session_id) and take_i32(c, &request.session_epoch)):
        return False
    if not take_length(c, is_flexible, LONG, &topics):
        return False
    for _ in range(topics):
        if not _read_topic(c, &text, &text_bytes, version) or not take_length(c, is_flexible, LONG, &partitions):
            return False
        # Null may not be read. Of topics without partitions a frame may have millions, which are decoded in steps.
        if partitions <= 0:
            return False
        for _ in range(partitions):
            if request.count == MOST:
                return False
            asked = &request.asked[request.count]
            asked.topic, asked.topic_bytes = text, text_bytes
            if not _read_partition(c, asked, version) or _is_named(request, asked):
                return False
            request.count += 1
        if not has_no_tags(c, is_flexible):
            return False
    if version >= SESSIONS and (not take_length(c, is_flexible, LONG, &forgotten) or forgotten != 0):
        return False
    if version >= RACKS and (not take_text(c, is_flexible, &text, &text_bytes) or text_bytes < 0):
        return False
    return has_no_tags(c, is_flexible) and 0 <= topics


cdef bint _is_of_topic(Read* read, Read* before) noexcept nogil:
    return before.topic_bytes == read.topic_bytes and (
        before.topic == read.topic or memcmp(before.topic, read.topic, <size_t>read.topic_bytes) == 0
    )


cdef bytes write_answer(Request* request, RequestHeader* header, Reads* reads, Out* records):
    cdef int version = header.api_version
    cdef bint is_flexible = version >= FLEXIBLE
    cdef int[MOST] counts       # of the partitions of each topic
    cdef int topics = 0
    cdef Read* before = NULL
    cdef Read* read
    cdef Out out
    cdef int at
    cdef int topic = 0
    for at in range(reads.count):
        read = &reads.reads[at]
        if read.is_shown:
            if before is NULL or not _is_of_topic(read, before):
                counts[topics] = 0
                topics += 1
            counts[topics - 1] += 1
            before = read
    before = NULL
    out_init(&out)
    try:
        reserve(&out, records.size_bytes)
        begin_answer(&out, header, is_flexible)
        write_i32(&out, 0)                                      # throttle time
        if version >= SESSIONS:
            write_i16(&out, 0)                                  # no error
            write_i32(&out, request.session_id)
        write_long_length(&out, is_flexible, topics)
        for at in range(reads.count):
            read = &reads.reads[at]
            if not read.is_shown:
                continue
            if before is NULL or not _is_of_topic(read, before):
                if before is not NULL and is_flexible:
                    write_i8(&out, 0)
                if version < TOPIC_IDS:
                    write_short_length(&out, is_flexible, read.topic_bytes)
                write_raw(&out, read.topic, read.topic_bytes)
                write_long_length(&out, is_flexible, counts[topic])
                topic += 1
            before = read
            _write_partition(&out, read, records, version, request.isolation_level == READ_COMMITTED)
        if is_flexible:
            if before is not NULL:
                write_i8(&out, 0)
            write_i8(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)


cdef int _write_partition(Out* out, Read* read, Out* records, int version, bint is_committed) except -1:
    cdef bint is_flexible = version >= FLEXIBLE
    write_i32(out, read.partition)
    write_i16(out, 0)                                           # no error
    write_i64(out, read.end_offset)                             # the high watermark
    write_i64(out, read.stable_offset)
    if version >= LOG_START_OFFSET:
        write_i64(out, read.log_start_offset)
    write_long_length(out, is_flexible, 0 if is_committed else -1)      # aborted transactions
    if version >= RACKS:
        write_i32(out, NONE)                                    # preferred replica
    write_long_length(out, is_flexible, read.size_bytes)
    write_raw(out, records.data + read.records_at, read.size_bytes)
    return write_i8(out, 0) if is_flexible else 0

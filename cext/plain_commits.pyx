"""An OffsetCommit of which nothing is refused, from frame to frame. Contracts are in plain_commits.pyi."""

cimport cython
from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t

from kafka_shim.cext.batch cimport TRANSACTIONAL_FLAG, Header, write_batch
from kafka_shim.cext.bigendian cimport load_i64
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.java_hash cimport partition_of
from kafka_shim.cext.log_base cimport Appended, LogBase
from kafka_shim.cext.offset_records cimport Committed, write_offset_key, write_offset_value
from kafka_shim.cext.plain_api cimport (
    IN_STEPS_BYTES,
    LONG,
    Frame,
    PlainAppend,
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
from kafka_shim.cext.varint cimport size_varint, zigzag32
from kafka_shim.cext.wire cimport (
    Out,
    out_free,
    out_init,
    write_i8,
    write_i16,
    write_i32,
    write_long_length,
    write_raw,
    write_short_length,
    write_uvarint,
)

cdef enum:
    UUID_BYTES = 16
    NO_EPOCH = -1
    NO_EXPIRY = -1
    NO_PRODUCER = -1
    # Kafka's CoordinatorRuntime gives it to every batch, also without a producer.
    COORDINATOR_SEQUENCE = 0
    # Versions with a new field, or another form.
    THROTTLE_TIME = 3
    LAST_RETENTION = 4
    LEADER_EPOCH = 6
    STATIC_MEMBERS = 7
    FLEXIBLE = 8
    TOPIC_IDS = 10

MOST_OFFSETS = MOST


@cython.final
@cython.freelist(4)
cdef class Commit:
    cdef readonly str group_id
    cdef readonly int32_t generation_id_or_member_epoch
    cdef readonly str member_id
    cdef readonly str group_instance_id


cdef inline bint _take_i64(Reader* c, int64_t* value) noexcept nogil:
    if not take(c, 8):
        return False
    value[0] = load_i64(c.at - 8)
    return True


cdef bint _read_member(Reader* c, OffsetsRequest* request, int version) noexcept nogil:
    cdef bint is_flexible = version >= FLEXIBLE
    request.instance_id_bytes = -1
    request.retention_ms = NO_RETENTION
    return (
        take_text(c, is_flexible, &request.group_id, &request.group_id_bytes)
        and request.group_id_bytes >= 0
        and take_i32(c, &request.epoch)
        and take_text(c, is_flexible, &request.member_id, &request.member_id_bytes)
        and request.member_id_bytes >= 0
        and (
            version < STATIC_MEMBERS or take_text(c, is_flexible, &request.instance_id, &request.instance_id_bytes)
        )
        and (version > LAST_RETENTION or _take_i64(c, &request.retention_ms))
    )


cdef bint _read_partition(Reader* c, OffsetsRequest* request, int version) noexcept nogil:
    cdef Entry* entry = &request.entries[request.count]
    cdef bint is_flexible = version >= FLEXIBLE
    if request.count == MOST:
        return False
    entry.leader_epoch = NO_EPOCH
    request.count += 1
    return (
        take_i32(c, &entry.index)
        and _take_i64(c, &entry.offset)
        and (version < LEADER_EPOCH or take_i32(c, &entry.leader_epoch))
        and take_text(c, is_flexible, &entry.metadata, &entry.metadata_bytes)
        and has_no_tags(c, is_flexible)
    )


cdef bint read_topics(Reader* c, OffsetsRequest* request, int version) noexcept nogil:
    cdef bint is_flexible = version >= FLEXIBLE
    cdef int32_t topics = 0
    cdef int32_t partitions = 0
    cdef Topic* topic
    request.topic_count = request.count = 0
    if not take_length(c, is_flexible, LONG, &topics):
        return False
    if topics < 1 or topics > MOST:
        return False
    while request.topic_count < topics:
        topic = &request.topics[request.topic_count]
        topic.count = 0
        if version >= TOPIC_IDS:
            topic.name, topic.size_bytes = c.at, UUID_BYTES
            if not take(c, UUID_BYTES):
                return False
        elif not take_text(c, is_flexible, &topic.name, &topic.size_bytes) or topic.size_bytes < 1:
            return False
        if not take_length(c, is_flexible, LONG, &partitions) or partitions < 1:
            return False
        while topic.count < partitions:
            if not _read_partition(c, request, version):
                return False
            topic.count += 1
        if not has_no_tags(c, is_flexible):
            return False
        request.topic_count += 1
    return has_no_tags(c, is_flexible)


cdef class OffsetsApi(PlainAppend):
    def __init__(
        self, segment not None, Py_ssize_t cached_batches, prepare not None, fail not None
    ):
        self._segment = segment
        self._cached_batches = cached_batches
        self._prepare = prepare
        self._fail = fail

    cdef object _store(
        self, object broker, object groups, LogBase log, bytearray batch, str group_id, list changes, int64_t now_ms,
        object producer_id
    ):
        cdef Appended appended = None
        # An object: there may be no memory for it behind a failed append.
        cdef object base_offset = log.log_end_offset
        cdef object failure = None
        groups.is_current = False
        try:
            appended = log.append_own_batch(self._segment.append, batch, now_ms, True, self._cached_batches)
            if appended is None:
                pass
            elif producer_id is None:
                groups.commit_all(group_id, changes, now_ms, appended.base_offset)
            else:
                groups.commit_pending(group_id, changes, producer_id, appended.base_offset)
        except Exception as error:
            failure = self._fail(broker, groups, log, None if appended is not None else base_offset, error)
        if failure is not None:
            return failure
        groups.is_current = True
        return appended


cdef class PlainCommit(OffsetsApi):
    cdef object _answer(self, object broker, RequestHeader* header, Frame* frame, Reader* c, int64_t now_ms):
        cdef OffsetsRequest request
        if frame.size_bytes > IN_STEPS_BYTES or not (
            _read_member(c, &request, header.api_version) and read_topics(c, &request, header.api_version)
        ):
            return None
        return self._serve(broker, &request, header, now_ms)

    cdef object _serve(self, object broker, OffsetsRequest* request, RequestHeader* header, int64_t now_ms):
        cdef list changes
        cdef bytearray batch
        cdef LogBase log
        cdef Py_ssize_t partition_count
        cdef Commit commit
        cdef dict topics
        cdef object failure = None
        try:
            image = broker.metadata.image
            topics = image.topics
            partition_count = broker.groups.partitions.known
            if partition_count == 0:
                return None
            commit = _commit_of(request)
            partition = partition_of(commit.group_id, partition_count)
            prepared = self._prepare(broker, partition, commit, header.api_version)
            if prepared is None:
                return None
            groups, end, moves, metadata_limit = <tuple?>prepared
            log = <LogBase?>end
            if header.api_version >= TOPIC_IDS:
                topics = image.topics_by_id
            changes = changes_of(topics, request, header.api_version, metadata_limit, now_ms)
            if changes is None:
                return None
            batch = batch_of(commit.group_id, changes, now_ms, NO_PRODUCER, NO_PRODUCER, False)
            answer = answer_to(
                request, header, header.api_version >= FLEXIBLE, header.api_version >= THROTTLE_TIME,
                header.api_version >= TOPIC_IDS,
            )
        except Exception:
            return None         # nothing is appended: the handler meets it again, and answers
        stored = self._store(broker, groups, log, batch, commit.group_id, changes, now_ms, None)
        if not isinstance(stored, Appended):
            return stored
        if moves:
            try:
                broker.groups.move_timers(moves)
            except Exception as error:
                failure = error
            if failure is not None:
                return failure
        self.answered = request.count
        return answer


cdef Commit _commit_of(OffsetsRequest* request):
    cdef Commit commit = Commit.__new__(Commit)
    commit.group_id = text_of(request.group_id, request.group_id_bytes)
    commit.generation_id_or_member_epoch = request.epoch
    commit.member_id = text_of(request.member_id, request.member_id_bytes)
    commit.group_instance_id = text_of(request.instance_id, request.instance_id_bytes)
    return commit


cdef list changes_of(dict known, OffsetsRequest* request, int version, int64_t metadata_limit, int64_t now_ms):
    cdef list changes = []
    cdef int64_t expire_ms = NO_EXPIRY
    cdef Topic* topic
    cdef Entry* entry = &request.entries[0]
    cdef Py_ssize_t count
    cdef int at
    if request.retention_ms != NO_RETENTION:
        expire_ms = <int64_t>(<uint64_t>now_ms + <uint64_t>request.retention_ms)     # a sum in Java
    for at in range(request.topic_count):
        topic = &request.topics[at]
        if version >= TOPIC_IDS:
            found = known.get(PyBytes_FromStringAndSize(<const char*>topic.name, UUID_BYTES))
        else:
            found = known.get(text_of(topic.name, topic.size_bytes))
        if found is None:
            return None
        count = len(found.partitions)
        name, topic_id = found.name, found.topic_id
        for _ in range(topic.count):
            # Those that Java counts otherwise are no longer ASCII.
            if not 0 <= entry.index < count or <int64_t>entry.metadata_bytes * 2 > metadata_limit:
                return None
            metadata = text_of(entry.metadata, entry.metadata_bytes) if entry.metadata_bytes > 0 else ""
            changes.append((name, entry.index, Committed(
                entry.offset, entry.leader_epoch, metadata, now_ms, expire_ms, topic_id
            )))
            entry += 1
    return changes


cdef bytearray batch_of(
    str group_id, list changes, int64_t now_ms, int64_t producer_id, int16_t producer_epoch, bint is_transactional
):
    cdef Out out
    cdef Out key
    cdef Out value
    cdef Header header
    cdef int32_t count = 0
    out_init(&out)
    out_init(&key)
    out_init(&value)
    try:
        for topic, index, committed in changes:
            key.size_bytes = value.size_bytes = 0
            write_offset_key(&key, group_id, <str>topic, index)
            write_offset_value(&value, <Committed>committed)
            _write_record(&out, count, &key, &value)
            count += 1
        header = Header(
            0, 0, TRANSACTIONAL_FLAG if is_transactional else 0, count - 1, now_ms, now_ms, producer_id,
            producer_epoch, COORDINATOR_SEQUENCE, count
        )
        return write_batch(&header, PyMemoryView_FromMemory(<char*>out.data, out.size_bytes, PyBUF_READ))
    finally:
        out_free(&out)
        out_free(&key)
        out_free(&value)


cdef int _write_record(Out* out, int32_t offset_delta, Out* key, Out* value) except -1:
    cdef int32_t key_bytes = <int32_t>key.size_bytes
    cdef int32_t value_bytes = <int32_t>value.size_bytes
    # Attributes, the difference of the timestamp and the number of headers are 0, which is a byte each.
    write_uvarint(out, zigzag32(
        3 + size_varint(offset_delta) + size_varint(key_bytes) + key_bytes + size_varint(value_bytes) + value_bytes
    ))
    write_i8(out, 0)
    write_i8(out, 0)
    write_uvarint(out, zigzag32(offset_delta))
    write_uvarint(out, zigzag32(key_bytes))
    write_raw(out, key.data, key_bytes)
    write_uvarint(out, zigzag32(value_bytes))
    write_raw(out, value.data, value_bytes)
    return write_i8(out, 0)


cdef bytes answer_to(
    OffsetsRequest* request, RequestHeader* header, bint is_flexible, bint has_throttle_time, bint by_id
):
    cdef Out out
    cdef Topic* topic
    cdef Entry* entry = &request.entries[0]
    cdef int at
    out_init(&out)
    try:
        begin_answer(&out, header, is_flexible)
        if has_throttle_time:
            write_i32(&out, 0)
        write_long_length(&out, is_flexible, request.topic_count)
        for at in range(request.topic_count):
            topic = &request.topics[at]
            if not by_id:
                write_short_length(&out, is_flexible, topic.size_bytes)
            write_raw(&out, topic.name, topic.size_bytes)
            write_long_length(&out, is_flexible, topic.count)
            for _ in range(topic.count):
                write_i32(&out, entry.index)
                write_i16(&out, 0)                              # no error
                if is_flexible:
                    write_i8(&out, 0)
                entry += 1
            if is_flexible:
                write_i8(&out, 0)
        if is_flexible:
            write_i8(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)

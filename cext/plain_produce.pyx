"""A Produce request whose batches are all plain, from frame to frame. Contracts are in plain_produce.pyi."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcmp

from kafka_shim.cext.batch cimport (
    AT_ATTRIBUTES,
    AT_BASE_SEQUENCE,
    AT_LENGTH,
    AT_MAGIC,
    AT_PRODUCER_EPOCH,
    AT_PRODUCER_ID,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    LENGTH_END,
    TRANSACTIONAL_FLAG,
)
from kafka_shim.cext.bigendian cimport load_i16, load_i32, load_i64
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.log_base cimport LogBase, ProducerBase, ProducersBase
from kafka_shim.cext.plain_api cimport (
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
)
from kafka_shim.cext.records cimport may_unpack
from kafka_shim.cext.transaction_log cimport TransactionLogBase
from kafka_shim.cext.wire cimport (
    Out,
    out_free,
    out_init,
    write_i8,
    write_i16,
    write_i32,
    write_i64,
    write_long_length,
    write_raw,
    write_short_length,
)

cdef enum:
    MOST = 64                   # partitions, and so topics
    NO_OFFSET = -1
    NO_TIME = -1
    ALL_REPLICAS = -1
    LEADER = 1
    UUID_BYTES = 16
    ZSTD = 4
    # Versions with a new field or codec, or another form.
    LOG_START_OFFSET = 5
    ZSTD_BATCHES = 7
    RECORD_ERRORS = 8
    FLEXIBLE = 9
    TRANSACTIONS_2 = 12         # adds the partitions to the transaction
    TOPIC_IDS = 13

MOST_PARTITIONS = MOST

# One partition of the request, and how it went.
cdef struct Entry:
    uint8_t* records
    int32_t size_bytes
    int32_t index
    int64_t base_offset
    int64_t log_start_offset

cdef struct Topic:
    const uint8_t* name         # or its id
    int32_t size_bytes
    int count                   # of its partitions

cdef struct Request:
    const uint8_t* transactional_id
    int32_t transactional_id_bytes      # -1: null
    bint is_transactional               # with one batch at least
    bint asks_coordinator               # the transaction is not open in each partition
    int64_t producer_id                 # of the transactional batches
    int32_t producer_epoch
    int topic_count
    int count
    Topic[MOST] topics
    Entry[MOST] entries


cdef bint _read_topic(Reader* c, Topic* topic, int version) noexcept nogil:
    if version >= TOPIC_IDS:
        topic.name, topic.size_bytes = c.at, UUID_BYTES
        return take(c, UUID_BYTES)
    return take_text(c, version >= FLEXIBLE, &topic.name, &topic.size_bytes) and topic.size_bytes > 0


cdef bint _is_new_topic(Request* request, Topic* topic) noexcept nogil:
    cdef int at
    for at in range(request.topic_count):
        if request.topics[at].size_bytes == topic.size_bytes and memcmp(
            request.topics[at].name, topic.name, <size_t>topic.size_bytes
        ) == 0:
            return False
    return True


cdef bint _read_partition(Reader* c, Request* request, Topic* topic, bint is_flexible) noexcept nogil:
    cdef Entry* entry = &request.entries[request.count]
    cdef int at
    if (
        request.count == MOST
        or not take_i32(c, &entry.index)
        or not take_length(c, is_flexible, LONG, &entry.size_bytes)
    ):
        return False
    entry.records = c.at
    if entry.size_bytes < BATCH_HEADER_SIZE or not take(c, entry.size_bytes) or not has_no_tags(c, is_flexible):
        return False
    for at in range(request.count - topic.count, request.count):
        if request.entries[at].index == entry.index:
            return False        # the last one counts
    request.count += 1
    topic.count += 1
    return True


cdef bint _read(Reader* c, Request* request, int version) noexcept nogil:
    """Read a whole request with at least one partition in each of its topics, none named twice."""
    cdef bint is_flexible = version >= FLEXIBLE
    cdef int32_t topics = 0
    cdef int32_t partitions = 0
    cdef int16_t acks
    cdef Topic* topic
    request.topic_count = request.count = 0
    if not take_text(c, is_flexible, &request.transactional_id, &request.transactional_id_bytes):
        return False
    if not take(c, 6):          # acks, and the timeout, which asks nothing of one replica
        return False
    acks = load_i16(c.at - 6)
    if (acks != ALL_REPLICAS and acks != LEADER) or not take_length(c, is_flexible, LONG, &topics):
        return False
    if topics < 1 or topics > MOST:
        return False
    while request.topic_count < topics:
        topic = &request.topics[request.topic_count]
        topic.count = 0
        if not _read_topic(c, topic, version) or not _is_new_topic(request, topic):
            return False
        if not take_length(c, is_flexible, LONG, &partitions) or partitions < 1:
            return False
        while topic.count < partitions:
            if not _read_partition(c, request, topic, is_flexible):
                return False
        if not has_no_tags(c, is_flexible):
            return False
        request.topic_count += 1
    return has_no_tags(c, is_flexible)


cdef class PlainProduce(PlainAppend):
    cdef object _segment
    cdef object _others
    cdef Py_ssize_t _cached_batches
    cdef object _admit

    def __init__(self, segment not None, frozenset others not None, Py_ssize_t cached_batches, admit not None):
        self._segment = segment
        self._others = others
        self._cached_batches = cached_batches
        self._admit = admit

    cdef object _answer(self, object broker, RequestHeader* header, Frame* frame, Reader* c, int64_t now_ms):
        cdef Request request
        # The append stamps each batch where it lies.
        if frame.whole.readonly or not _read(c, &request, header.api_version):
            return None
        guards = None
        try:
            logs = self._locate(broker, &request, header.api_version)
            if logs is None or not _are_plain(&request, logs, header.api_version):
                return None
            if request.asks_coordinator:
                outcomes, flushes = self._ask(broker, &request, logs, header.api_version, now_ms)
                if flushes or any([isinstance(each, Exception) for each in outcomes]):
                    return outcomes, flushes
                guards = outcomes
        except Exception:
            return None         # nothing is appended: the handler meets it again, and answers
        done = self._append(broker, &request, logs, guards, frame.whole, now_ms)
        if done is not True:
            return done
        self.answered = request.count
        return _response(&request, header)

    cdef tuple _ask(self, object broker, Request* request, list logs, int version, int64_t now_ms):
        """Have the coordinator admit the transactional batches. Returns the outcomes and flushes of `admit`."""
        cdef list asked = []
        cdef list admitted
        cdef const uint8_t* p
        cdef int at
        for at in range(request.count):
            p = request.entries[at].records
            if load_i16(p + AT_ATTRIBUTES) & TRANSACTIONAL_FLAG:
                asked.append((logs[at], load_i32(p + AT_BASE_SEQUENCE)))
        transactional_id = PyUnicode_DecodeASCII(
            <const char*>request.transactional_id, request.transactional_id_bytes, NULL
        )
        if version >= TRANSACTIONS_2:
            admitted = (<TransactionLogBase?>broker.transactions._log).admit_plain(
                transactional_id, request.producer_id, request.producer_epoch, asked, now_ms, self._segment.append,
                self._cached_batches, "Produce",
            )
            if admitted is not None:
                return admitted, ()
        return self._admit(broker, transactional_id, request.producer_id, request.producer_epoch, asked, version)

    cdef list _locate(self, object broker, Request* request, int version):
        """Returns the log of each partition, or None if one is not open, or not here for clients."""
        cdef list logs = []
        cdef dict loaded = broker.logs.partitions.loaded
        cdef dict by_id = broker.metadata.image.topics_by_id if version >= TOPIC_IDS else None
        cdef Topic* topic
        cdef Entry* entry = &request.entries[0]
        cdef int at
        for at in range(request.topic_count):
            topic = &request.topics[at]
            if by_id is None:
                name = PyUnicode_DecodeASCII(<const char*>topic.name, topic.size_bytes, NULL)
            else:
                found = by_id.get(PyBytes_FromStringAndSize(<const char*>topic.name, UUID_BYTES))
                if found is None:
                    return None
                name = found.name
            if name in self._others:
                return None
            for _ in range(topic.count):
                log = loaded.get((name, entry.index))
                if log is None:
                    return None
                logs.append(<LogBase?>log)
                entry += 1
        return logs

    cdef object _append(
        self, object broker, Request* request, list logs, list guards, Py_buffer* whole, int64_t now_ms
    ):
        """Append each batch; `guards` are those of the transactional ones in order, or None. Returns True, or what
        `serve` returns if there is something to decide."""
        cdef object put = self._segment.append
        cdef int64_t size_bytes = 0
        cdef object base_offset
        cdef Entry* entry
        cdef LogBase log
        cdef list done = None
        cdef int at
        cdef int next_guard = 0
        for at in range(request.count):
            entry = &request.entries[at]
            log = <LogBase>logs[at]
            guard = None
            if guards is not None and load_i16(entry.records + AT_ATTRIBUTES) & TRANSACTIONAL_FLAG:
                guard = guards[next_guard]
                next_guard += 1
            outcome = guard
            base_offset = log.log_end_offset    # an object: there may be no memory for it behind a failed append
            try:
                entry.base_offset = log.append_at(
                    put, <object>whole.obj, entry.records - <uint8_t*>whole.buf, entry.records, entry.size_bytes,
                    now_ms, guard, self._cached_batches, True,
                )
                if entry.base_offset >= 0:
                    entry.log_start_offset = log.log_start_offset
                    size_bytes += entry.size_bytes
            except (OSError, MemoryError) as error:
                entry.base_offset = NO_OFFSET
                outcome = log.not_appended(base_offset, error)
            except Exception as error:
                entry.base_offset = NO_OFFSET
                outcome = error
            if done is None:
                if entry.base_offset >= 0:
                    continue
                if outcome is None and request.count == 1:
                    return None
                done = [_appended(&request.entries[before]) for before in range(at)]
            done.append(_appended(entry) if entry.base_offset >= 0 else outcome)
        if size_bytes:
            metrics = broker.metrics
            metrics.appended_bytes += size_bytes
        return True if done is None else done


cdef tuple _appended(Entry* entry):
    return entry.base_offset, entry.log_start_offset


cdef bint _are_plain(Request* request, list logs, int version) except -1:
    """Whether each batch may be appended without a thread or an fsync. Says of the transactional ones who sent them,
    and whether the coordinator must be asked."""
    cdef Entry* entry
    cdef LogBase log
    cdef ProducerBase producer
    cdef const uint8_t* p
    cdef int64_t producer_id
    cdef int32_t producer_epoch
    cdef int16_t attributes
    cdef int codec
    cdef int at
    request.is_transactional = request.asks_coordinator = False
    for at in range(request.count):
        entry = &request.entries[at]
        log = <LogBase>logs[at]
        p = entry.records
        attributes = load_i16(p + AT_ATTRIBUTES)
        if p[AT_MAGIC] != 2 or not log._is_plain or not log._is_ready():
            return False
        if load_i32(p + AT_LENGTH) != entry.size_bytes - LENGTH_END:
            return False
        codec = attributes & CODEC_MASK
        if codec != 0 and (
            codec > ZSTD
            or (codec == ZSTD and version < ZSTD_BATCHES)
            or not may_unpack(p, entry.size_bytes, log._most_message_bytes)
        ):
            return False
        if not attributes & TRANSACTIONAL_FLAG:
            continue
        producer_id, producer_epoch = load_i64(p + AT_PRODUCER_ID), load_i16(p + AT_PRODUCER_EPOCH)
        if not request.is_transactional:
            if request.transactional_id_bytes < 0 or producer_id < 0:
                return False
            request.is_transactional = True
            request.producer_id, request.producer_epoch = producer_id, producer_epoch
        elif producer_id != request.producer_id or producer_epoch != request.producer_epoch:
            return False
        producer = (<ProducersBase?>log.producers).entries.get(producer_id)
        if producer is None or producer.epoch != producer_epoch or producer.txn_first_offset < 0:
            request.asks_coordinator = True
    return True


cdef bytes _response(Request* request, RequestHeader* header):
    cdef int version = header.api_version
    cdef bint is_flexible = version >= FLEXIBLE
    cdef Out out
    cdef Topic* topic
    cdef Entry* entry = &request.entries[0]
    cdef int at
    out_init(&out)
    try:
        begin_answer(&out, header, is_flexible)
        write_long_length(&out, is_flexible, request.topic_count)
        for at in range(request.topic_count):
            topic = &request.topics[at]
            if version < TOPIC_IDS:
                write_short_length(&out, is_flexible, topic.size_bytes)
            write_raw(&out, topic.name, topic.size_bytes)
            write_long_length(&out, is_flexible, topic.count)
            for _ in range(topic.count):
                write_i32(&out, entry.index)
                write_i16(&out, 0)                              # no error
                write_i64(&out, entry.base_offset)
                write_i64(&out, NO_TIME)                        # of an append of which the client's time counts
                if version >= LOG_START_OFFSET:
                    write_i64(&out, entry.log_start_offset)
                if version >= RECORD_ERRORS:
                    write_long_length(&out, is_flexible, 0)
                    write_short_length(&out, is_flexible, -1)   # no message
                if is_flexible:
                    write_i8(&out, 0)
                entry += 1
            if is_flexible:
                write_i8(&out, 0)
        write_i32(&out, 0)                                      # throttle time
        if is_flexible:
            write_i8(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)

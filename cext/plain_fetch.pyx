"""A Fetch of a few partitions that is answered at once, from frame to frame. Contracts are in plain_fetch.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_shim.cext.fetch_frames cimport (
    MOST,
    NO_SESSION,
    NONE,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TOPIC_IDS,
    UUID_BYTES,
    Asked,
    Read,
    Reads,
    Request,
    read_request,
    write_answer,
)
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.log_base cimport LogBase, ProducersBase
from kafka_shim.cext.plain_api cimport Frame, PlainApi, Reader, authorizer_of, read_body, text_of
from kafka_shim.cext.segment cimport Found, SegmentBase
from kafka_shim.cext.session_base cimport CachedBase, SessionBase
from kafka_shim.cext.wire cimport Out, out_free, out_init, reserve

cdef enum:
    MAX_SESSION_ID = 0x7FFFFFFF

MOST_PARTITIONS = MOST

cdef class PlainFetch(PlainApi):
    cdef int64_t _copy_bytes

    def __init__(self, int64_t copy_bytes):
        self._copy_bytes = copy_bytes

    cdef object serve(self, object broker, object session, RequestHeader* header, object client_id, Frame* frame):
        cdef Reader c
        cdef Request request
        cdef Out records
        if authorizer_of(broker) is not None:
            return None
        read_body(&c, frame, header)
        out_init(&records)
        try:
            if not read_request(&c, &request, header.api_version):
                return None
            if request.max_bytes <= 0 or not READ_UNCOMMITTED <= request.isolation_level <= READ_COMMITTED:
                return None
            if request.session_epoch > 0:
                return self._continue(broker, header, &request, &records)
            if request.session_epoch == NONE and request.session_id == NO_SESSION:
                return self._fetch(broker, header, &request, &records)
            return None
        except Exception:
            return None         # the handler meets it again, and answers
        finally:
            out_free(&records)

    cdef object _fetch(self, object broker, RequestHeader* header, Request* request, Out* records):
        """Without a session."""
        cdef Reads reads
        cdef Asked* asked
        cdef list logs = []
        cdef bint by_id = header.api_version >= TOPIC_IDS
        cdef int at
        reads.count, reads.size_bytes, reads.limit_bytes = 0, 0, broker.config.fetch_max_bytes
        if not request.count:
            return None
        for at in range(request.count):
            asked = &request.asked[at]
            name = _name_of(asked.topic, asked.topic_bytes, by_id)
            if by_id:
                name = _topic_of(broker, name)
            if name is None:
                return None
            log = _log_of(broker, name, asked.partition)
            if log is None or not _read_log(<LogBase>log, asked, request, &reads, records, self._copy_bytes):
                return None
            reads.reads[at].is_shown = True
            logs.append(log)
        if not _is_enough(request, &reads):
            return None
        answer = write_answer(request, header, &reads, records)
        broker.metrics.fetched_bytes += reads.size_bytes
        _count(logs, &reads)
        self.answered = 1 + reads.count
        return answer

    cdef object _continue(self, object broker, RequestHeader* header, Request* request, Out* records):
        """The next one of a session."""
        cdef SessionBase session
        cdef dict sessions = broker.fetch_sessions.sessions
        cdef Reads reads
        cdef list named = []
        cdef list changed, logs, names
        cdef bint by_id = header.api_version >= TOPIC_IDS
        found = sessions.get(request.session_id)
        if found is None:
            return None
        session = <SessionBase?>found
        if (
            session.epoch != request.session_epoch
            or session.by_id != by_id
            or len(session.changed) > MOST
            or session.reader != (header.api_version, request.isolation_level, NONE, NONE, None)
            or not _find_named(session, request, named)
        ):
            return None
        changed = _in_order(session, named)
        if len(changed) > MOST:
            return None
        logs, names = [], []
        reads.count, reads.size_bytes, reads.limit_bytes = 0, 0, broker.config.fetch_max_bytes
        if not _read_changed(broker, request, named, changed, logs, names, &reads, records, self._copy_bytes):
            return None
        if not _is_enough(request, &reads):
            return None
        _decide_shown(changed, &reads)
        answer = write_answer(request, header, &reads, records)
        metrics = broker.metrics
        fetched_bytes = metrics.fetched_bytes + reads.size_bytes
        now_ms = broker.clock.monotonic_ms()
        # Up to here nothing has happened. If memory ends in the next two, the handler does the same again.
        _move(session, request, named)
        _follow(request, changed, logs, names, &reads)
        # From here on nothing may need memory: the handler would refuse the request, whose epoch is over.
        session.used_ms = now_ms
        session.epoch = session.epoch + 1 if session.epoch < MAX_SESSION_ID else 1
        self.answered = 1 + _remember(session, request, changed, &reads)
        metrics.fetched_bytes = fetched_bytes
        _count(logs, &reads)
        return answer


cdef object _name_of(const uint8_t* topic, int32_t size_bytes, bint by_id):
    if by_id:
        return PyBytes_FromStringAndSize(<const char*>topic, size_bytes)
    return text_of(topic, size_bytes)


cdef object _topic_of(object broker, object topic_id):
    """The name of a topic, or None if it is not there."""
    found = (<dict?>broker.metadata.image.topics_by_id).get(topic_id)
    return None if found is None else found.name


cdef object _log_of(object broker, object name, int32_t partition):
    """The log, or None if it is not loaded or nothing can be read of it."""
    cdef LogBase log
    found = (<dict?>broker.logs.partitions.loaded).get((name, partition))
    if found is None:
        return None
    log = <LogBase?>found
    return None if log.is_offline or log.is_closed or log.sync_error is not None else log


cdef bint _find_named(SessionBase session, Request* request, list named) except -1:
    """Whether the session has each partition that the request names."""
    cdef Asked* asked
    cdef object name = None
    cdef const uint8_t* before = NULL
    cdef int at
    for at in range(request.count):
        asked = &request.asked[at]
        if asked.topic != before:
            name = _name_of(asked.topic, asked.topic_bytes, session.by_id)
            before = asked.topic
        found = session.partitions.get((name, asked.partition))
        if found is None:
            return False
        named.append(<CachedBase?>found)
    return len(session.partitions) > 0


cdef list _in_order(SessionBase session, list named):
    """The partitions to read: `FetchSession.in_order` once those that are named have moved."""
    cdef list ordered = list(session.changed)
    cdef CachedBase one
    cdef int at, before
    for one in named:
        if one not in session.changed:
            ordered.append(one)
    for at in range(1, len(ordered)):
        one = <CachedBase>ordered[at]
        before = at
        while before > 0 and (<CachedBase>ordered[before - 1]).turn > one.turn:
            ordered[before] = ordered[before - 1]
            before -= 1
        ordered[before] = one
    return ordered


cdef bint _read_changed(
    object broker, Request* request, list named, list changed, list logs, list names, Reads* reads, Out* records,
    int64_t copy_bytes
) except -1:
    """Read each of these partitions. Returns False if one is not plain."""
    cdef Asked asked
    cdef CachedBase cached
    cdef Py_ssize_t size_bytes = 0
    cdef int at
    for cached in changed:
        for at in range(request.count):
            if named[at] is cached:
                asked = request.asked[at]
                break
        else:
            asked.partition, asked.fetch_offset = cached.partition, cached.fetch_offset
            asked.current_leader_epoch = cached.current_leader_epoch
            asked.last_fetched_epoch = cached.last_fetched_epoch
            asked.max_bytes = cached.max_bytes
        # What the frame has may be gone while others are read, and the session keeps its own.
        name = cached.topic
        if type(name) is bytes:
            asked.topic, asked.topic_bytes = <const uint8_t*>PyBytes_AS_STRING(name), UUID_BYTES
            name = _topic_of(broker, name)
            if name is None:
                return False
        else:
            asked.topic = <const uint8_t*>PyUnicode_AsUTF8AndSize(name, &size_bytes)
            asked.topic_bytes = <int32_t>size_bytes
        log = _log_of(broker, name, cached.partition)
        if log is None or not _read_log(<LogBase>log, &asked, request, reads, records, copy_bytes):
            return False
        logs.append(log)
        names.append(name)
    return True


cdef bint _read_log(
    LogBase log, Asked* asked, Request* request, Reads* reads, Out* records, int64_t copy_bytes
) except -1:
    """Read one partition: the stored bytes go behind `records`. Returns False if there is something to decide."""
    cdef Read* read = &reads.reads[reads.count]
    cdef int64_t left_bytes = min(<int64_t>request.max_bytes, reads.limit_bytes) - reads.size_bytes
    cdef dict open_transactions = (<ProducersBase?>log.producers)._open
    cdef SegmentBase segment
    cdef int64_t bound
    if (
        asked.current_leader_epoch >= 0 and asked.current_leader_epoch != log.leader_epoch
    ) or asked.last_fetched_epoch >= 0 or asked.max_bytes <= 0:
        return False
    if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset or not log.segments:
        return False
    segment = <SegmentBase?>log.segments[len(log.segments) - 1]
    if asked.fetch_offset < segment.base_offset:
        return False
    read.topic, read.topic_bytes, read.partition = asked.topic, asked.topic_bytes, asked.partition
    read.fetch_offset, read.end_offset = asked.fetch_offset, log.log_end_offset
    read.log_start_offset = log.log_start_offset
    read.stable_offset = log.last_stable_offset if open_transactions else log.log_end_offset
    read.segment_base = segment.base_offset if request.min_bytes > 1 else NONE
    read.records_at, read.size_bytes = records.size_bytes, 0
    reads.count += 1
    bound = read.stable_offset if request.isolation_level == READ_COMMITTED else read.end_offset
    if asked.fetch_offset >= bound:
        return True
    return _copy_records(
        log, segment, read, records, min(<int64_t>asked.max_bytes, max(left_bytes, 0)), reads, copy_bytes,
        request.isolation_level == READ_COMMITTED,
    )


cdef bint _copy_records(
    LogBase log, SegmentBase segment, Read* read, Out* records, int64_t most_bytes, Reads* reads, int64_t copy_bytes,
    bint is_committed
) except -1:
    """There is something to read in the last segment: `lookup._fill`."""
    cdef Found found
    cdef int64_t end_position = segment.size_bytes
    cdef int64_t size_bytes
    if is_committed:
        if not _has_none_aborted(segment, read.fetch_offset):
            return False
        if read.stable_offset < read.end_offset:
            bound = log.lso_position()
            if bound[0] != segment.base_offset:
                return False
            end_position = bound[1]
    if not segment.find_at(read.fetch_offset, &found):
        return False
    if found.position >= end_position or (found.size_bytes > most_bytes and reads.size_bytes):
        return not is_committed
    size_bytes = min(max(most_bytes, found.size_bytes), end_position - found.position)
    if size_bytes > copy_bytes - reads.size_bytes:
        return False            # the file is sent
    reserve(records, size_bytes)
    if segment.read_into(records.data + records.size_bytes, found.position, size_bytes) != size_bytes:
        return False
    records.size_bytes += size_bytes
    read.size_bytes = size_bytes
    reads.size_bytes += size_bytes
    return True


cdef bint _has_none_aborted(object segment, int64_t fetch_offset) except -1:
    """Whether no transaction was aborted at this offset or behind it."""
    last_offsets = segment.txn_index.last_offsets
    cdef Py_ssize_t count = len(last_offsets)
    return count == 0 or last_offsets[count - 1] < fetch_offset


cdef bint _is_enough(Request* request, Reads* reads) noexcept:
    return reads.size_bytes >= request.min_bytes or reads.size_bytes >= request.max_bytes or request.max_wait_ms <= 0


cdef int _decide_shown(list changed, Reads* reads) except -1:
    """`CachedPartition.must_respond` of each partition."""
    cdef CachedBase cached
    cdef Read* read
    cdef int at
    for at in range(reads.count):
        read, cached = &reads.reads[at], <CachedBase>changed[at]
        read.is_shown = (
            read.size_bytes > 0
            or cached.high_watermark != read.end_offset
            or cached.log_start_offset != read.log_start_offset
        )
    return 0


cdef int _move(SessionBase session, Request* request, list named) except -1:
    """`FetchSession.update`."""
    cdef CachedBase cached
    cdef Asked* asked
    cdef int at
    for at in range(request.count):
        asked, cached = &request.asked[at], <CachedBase>named[at]
        cached.fetch_offset, cached.max_bytes = asked.fetch_offset, asked.max_bytes
        cached.current_leader_epoch, cached.last_fetched_epoch = asked.current_leader_epoch, asked.last_fetched_epoch
        session.changed[cached] = None
    return 0


cdef bint _is_at_end(Read* read, bint is_committed) noexcept nogil:
    """Whether another read gives nothing until the log changes or the reader moves."""
    return read.size_bytes == 0 and read.fetch_offset >= (read.stable_offset if is_committed else read.end_offset)


cdef int _follow(Request* request, list changed, list logs, list names, Reads* reads) except -1:
    """Have the session hear of the logs of which it has read all."""
    cdef CachedBase cached
    cdef int at
    for at in range(reads.count):
        cached = <CachedBase>changed[at]
        if type(cached.topic) is bytes:
            cached.name = names[at]
        if cached.log is not logs[at] and _is_at_end(&reads.reads[at], request.isolation_level == READ_COMMITTED):
            cached.follow(logs[at])
    return 0


cdef int _remember(SessionBase session, Request* request, list changed, Reads* reads) except -1:
    """`FetchSession.mark_read` and `rotate`, and what the response has said. Returns how many partitions it shows."""
    cdef CachedBase cached
    cdef Read* read
    cdef int shown = 0
    cdef int at
    for at in range(reads.count):
        read, cached = &reads.reads[at], <CachedBase>changed[at]
        shown += read.is_shown
        cached.high_watermark, cached.log_start_offset = read.end_offset, read.log_start_offset
        if read.size_bytes:
            cached.turn = session.next_turn
            session.next_turn += 1
        elif _is_at_end(read, request.isolation_level == READ_COMMITTED):
            cached.segment_base = read.segment_base
            if cached in session.changed:
                del session.changed[cached]
    return shown


cdef int _count(list logs, Reads* reads) except -1:
    cdef int at
    for at in range(reads.count):
        (<LogBase>logs[at]).fetched_bytes += reads.reads[at].size_bytes
    return 0

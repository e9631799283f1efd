"""The SyncGroup of a member that gives out no assignments, from frame to frame. Contracts are in plain_syncs.pyi."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, uint8_t

from kafka_shim.cext.classic_requests cimport ClassicRequestsEnd, Syncing
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport (
    LONG,
    PlainApi,
    Reader,
    begin_answer,
    end_answer,
    has_no_tags,
    take_i32,
    take_length,
    take_text,
    text_of,
)
from kafka_shim.cext.wire cimport Out, out_free, out_init, write_bytes, write_i8, write_i16, write_i32, write_string

cdef enum:
    # Versions of SyncGroup with a new field, or another form.
    THROTTLE_TIME = 1
    STATIC_MEMBERS = 3
    FLEXIBLE = 4
    PROTOCOL = 5

cdef struct Text:
    const uint8_t* at
    int32_t size_bytes          # -1: null


cdef bint _take_text(Reader* c, bint is_flexible, Text* text) noexcept nogil:
    return take_text(c, is_flexible, &text.at, &text.size_bytes)


cdef Syncing _read(Reader* c, int version):
    cdef bint is_flexible = version >= FLEXIBLE
    cdef Text group_id, member_id, instance_id, protocol_type, protocol_name
    cdef int32_t generation_id = 0, count = 0
    cdef Syncing syncing
    instance_id.at = protocol_type.at = protocol_name.at = NULL
    instance_id.size_bytes = protocol_type.size_bytes = protocol_name.size_bytes = -1
    if not (
        _take_text(c, is_flexible, &group_id)
        and group_id.size_bytes > 0
        and take_i32(c, &generation_id)
        and _take_text(c, is_flexible, &member_id)
        and member_id.size_bytes >= 0
        and (version < STATIC_MEMBERS or _take_text(c, is_flexible, &instance_id))
    ):
        return None
    if version >= PROTOCOL and not (
        _take_text(c, is_flexible, &protocol_type)
        and protocol_type.size_bytes >= 0
        and _take_text(c, is_flexible, &protocol_name)
        and protocol_name.size_bytes >= 0
    ):
        return None
    if not take_length(c, is_flexible, LONG, &count) or count != 0 or not has_no_tags(c, is_flexible):
        return None
    syncing = Syncing.__new__(Syncing)
    syncing.group_id = text_of(group_id.at, group_id.size_bytes)
    syncing.generation_id = generation_id
    syncing.member_id = text_of(member_id.at, member_id.size_bytes)
    syncing.instance_id = text_of(instance_id.at, instance_id.size_bytes)
    syncing.protocol_type = text_of(protocol_type.at, protocol_type.size_bytes)
    syncing.protocol_name = text_of(protocol_name.at, protocol_name.size_bytes)
    return syncing


cdef class PlainSync(PlainApi):
    cdef object _delayed
    cdef object _failure

    def __init__(self, delayed not None, failure not None):
        self._delayed = delayed
        self._failure = failure
        self.answered = 1

    cdef object serve(
        self, object broker, object session, RequestHeader* header, object client_id, object frame, object now_ms
    ):
        cdef Py_buffer view
        cdef Reader c
        if broker.authorizer is not None or broker.clock.is_virtual:
            return None
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            c.at = <uint8_t*>view.buf + header.body_at
            c.end = <uint8_t*>view.buf + view.len
            return self._sync(broker, header, &c)
        except Exception:
            return None         # the handler meets it again, and answers
        finally:
            PyBuffer_Release(&view)

    cdef object _sync(self, object broker, RequestHeader* header, Reader* c):
        cdef Syncing syncing = _read(c, header.api_version)
        cdef ClassicRequestsEnd requests
        cdef object delayed
        if syncing is None:
            return None
        requests = <ClassicRequestsEnd?>broker.groups.classic
        if requests.assigned(syncing):
            return _assigned(header, syncing)
        delayed = self._delayed(self._failure)
        return delayed if requests.wait_to_sync(syncing, delayed) else None


cdef bytes _assigned(RequestHeader* header, Syncing syncing):
    cdef bint is_flexible = header.api_version >= FLEXIBLE
    cdef Out out
    out_init(&out)
    try:
        begin_answer(&out, header, is_flexible)
        if header.api_version >= THROTTLE_TIME:
            write_i32(&out, 0)
        write_i16(&out, 0)      # no error
        if header.api_version >= PROTOCOL:
            write_string(&out, True, syncing.group_protocol_type)
            write_string(&out, True, syncing.group_protocol)
        write_bytes(&out, is_flexible, syncing.assignment)
        if is_flexible:
            write_i8(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)

"""The JoinGroup by which a new member gets its id, from frame to frame. Contracts are in plain_joins.pyi."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport (
    LONG,
    PlainApi,
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
from kafka_shim.cext.wire cimport Out, out_free, out_init, write_i8, write_i16, write_i32, write_string, write_uvarint

cdef enum:
    NOTHING = 0                 # as the length of a compact string, one more than it is
    MEMBER_ID_REQUIRED = 79
    MOST_PROTOCOLS = 16
    # Versions of JoinGroup with a new field, or another form.
    ID_REQUIRED = 4
    STATIC_MEMBERS = 5
    FLEXIBLE = 6
    PROTOCOL_TYPE = 7
    REASON = 8
    SKIP_ASSIGNMENT = 9


@cython.final
@cython.freelist(4)
cdef class NewMember:
    cdef readonly str group_id
    cdef readonly int32_t session_timeout_ms
    cdef readonly str protocol_type
    cdef readonly list protocol_names
    cdef readonly int64_t metadata_bytes
    cdef public object group


cdef str _text(Reader* c, bint is_flexible):
    """None if it is not there, or null."""
    cdef const uint8_t* at = NULL
    cdef int32_t size_bytes = 0
    if not take_text(c, is_flexible, &at, &size_bytes):
        return None
    return text_of(at, size_bytes)


cdef bint _has_no_id(Reader* c, int version) noexcept nogil:
    """Neither a member id nor an instance id."""
    cdef bint is_flexible = version >= FLEXIBLE
    cdef const uint8_t* text = NULL
    cdef int32_t size_bytes = 0
    if not take_text(c, is_flexible, &text, &size_bytes) or size_bytes != 0:
        return False
    return version < STATIC_MEMBERS or (take_text(c, is_flexible, &text, &size_bytes) and size_bytes < 0)


cdef bint _read_protocols(Reader* c, bint is_flexible, NewMember member) except -1:
    cdef int32_t count = 0, size_bytes = 0
    cdef str name
    if not take_length(c, is_flexible, LONG, &count) or not 0 <= count <= MOST_PROTOCOLS:
        return False
    member.protocol_names = []
    for _ in range(count):
        name = _text(c, is_flexible)
        if name is None or not take_length(c, is_flexible, LONG, &size_bytes) or not take(c, size_bytes):
            return False
        if not has_no_tags(c, is_flexible):
            return False
        member.protocol_names.append(name)
        member.metadata_bytes += size_bytes
    return True


cdef NewMember _read(Reader* c, int version):
    cdef bint is_flexible = version >= FLEXIBLE
    cdef const uint8_t* reason = NULL
    cdef int32_t rebalance_timeout_ms = 0, reason_bytes = 0
    cdef NewMember member = NewMember.__new__(NewMember)
    member.group_id = _text(c, is_flexible)
    if (
        member.group_id is None
        or not take_i32(c, &member.session_timeout_ms)
        or not take_i32(c, &rebalance_timeout_ms)
        or not _has_no_id(c, version)
    ):
        return None
    member.protocol_type = _text(c, is_flexible)
    if member.protocol_type is None or not _read_protocols(c, is_flexible, member):
        return None
    if version >= REASON and not take_text(c, is_flexible, &reason, &reason_bytes):
        return None
    return member if has_no_tags(c, is_flexible) else None


cdef class PlainFirstJoin(PlainApi):
    cdef object _new_id
    cdef object _expect

    def __init__(self, new_id not None, expect not None):
        self._new_id = new_id
        self._expect = expect
        self.answered = 1
        self.answered_code = MEMBER_ID_REQUIRED

    cdef object serve(
        self, object broker, object session, RequestHeader* header, object client_id, object frame, object now_ms
    ):
        cdef Py_buffer view
        cdef Reader c
        if header.api_version < ID_REQUIRED or broker.authorizer is not None or broker.clock.is_virtual:
            return None
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            c.at = <uint8_t*>view.buf + header.body_at
            c.end = <uint8_t*>view.buf + view.len
            return self._answer(broker, header, client_id, &c)
        except Exception:
            return None         # the handler meets it again, and answers
        finally:
            PyBuffer_Release(&view)

    cdef bytes _answer(self, object broker, RequestHeader* header, object client_id, Reader* c):
        cdef NewMember member = _read(c, header.api_version)
        cdef str member_id
        cdef bytes answer
        if member is None:
            return None
        member_id = self._new_id(broker, client_id, member)
        if member_id is None:
            return None
        # Before the id is expected: memory may end here.
        answer = _id_required(header, member_id)
        self._expect(broker, member, member_id)
        return answer


cdef bytes _id_required(RequestHeader* header, str member_id):
    cdef bint is_flexible = header.api_version >= FLEXIBLE
    cdef Out out
    out_init(&out)
    try:
        begin_answer(&out, header, is_flexible)
        write_i32(&out, 0)      # throttle time
        write_i16(&out, MEMBER_ID_REQUIRED)
        write_i32(&out, -1)     # generation
        if header.api_version >= PROTOCOL_TYPE:
            write_uvarint(&out, NOTHING)
            write_uvarint(&out, NOTHING)
        else:
            write_string(&out, is_flexible, "")
        write_string(&out, is_flexible, "")     # leader
        if header.api_version >= SKIP_ASSIGNMENT:
            write_i8(&out, 0)
        write_string(&out, is_flexible, member_id)
        if is_flexible:
            write_uvarint(&out, 1)      # no members
            write_i8(&out, 0)
        else:
            write_i32(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)

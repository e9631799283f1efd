"""The JoinGroup by which a new member gets its id, from frame to frame, and the one by which it only waits for others.
Contracts are in plain_joins.pyi."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t

from kafka_shim.cext.classic_requests cimport ClassicRequestsBase, Joining
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport (
    LONG,
    PlainMember,
    Reader,
    begin_answer,
    end_answer,
    groups_of,
    has_no_tags,
    read_known,
    read_text,
    take,
    take_i32,
    take_length,
    take_text,
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


# What the last member said: others of its group say the same.
@cython.final
cdef class Known:
    cdef str protocol_type
    cdef str protocol


cdef bint _is_dynamic(Reader* c, int version) noexcept nogil:
    """No instance id."""
    cdef const uint8_t* text = NULL
    cdef int32_t size_bytes = 0
    return version < STATIC_MEMBERS or (take_text(c, version >= FLEXIBLE, &text, &size_bytes) and size_bytes < 0)


cdef bint _read_protocols(Reader* c, bint is_flexible, Joining joining, Known known) except -1:
    cdef int32_t count = 0, size_bytes = 0
    cdef str name
    cdef bytes metadata = None
    if not take_length(c, is_flexible, LONG, &count) or not 0 <= count <= MOST_PROTOCOLS:
        return False
    joining.protocols = []
    for _ in range(count):
        name = read_known(c, is_flexible, known.protocol)
        if name is None or not take_length(c, is_flexible, LONG, &size_bytes) or not take(c, size_bytes):
            return False
        if joining.member_id:
            metadata = PyBytes_FromStringAndSize(<const char*>c.at - size_bytes, size_bytes)
        if not has_no_tags(c, is_flexible):
            return False
        known.protocol = name
        joining.protocols.append((name, metadata))
        joining.metadata_bytes += len(name) + size_bytes
    return True


cdef Joining _read(Reader* c, int version, str last_id, Known known):
    cdef bint is_flexible = version >= FLEXIBLE
    cdef const uint8_t* reason = NULL
    cdef int32_t reason_bytes = 0
    cdef Joining joining = Joining.__new__(Joining)
    joining.group_id = read_known(c, is_flexible, last_id)
    if (
        joining.group_id is None
        or not take_i32(c, &joining.session_timeout_ms)
        or not take_i32(c, &joining.rebalance_timeout_ms)
    ):
        return None
    joining.member_id = read_text(c, is_flexible)
    if joining.member_id is None or not _is_dynamic(c, version):
        return None
    joining.protocol_type = read_known(c, is_flexible, known.protocol_type)
    if joining.protocol_type is None or not _read_protocols(c, is_flexible, joining, known):
        return None
    known.protocol_type = joining.protocol_type
    if version >= REASON and not take_text(c, is_flexible, &reason, &reason_bytes):
        return None
    return joining if has_no_tags(c, is_flexible) else None


cdef class PlainJoin(PlainMember):
    cdef object _delayed
    cdef object _failure
    cdef object _edit
    cdef Known _known

    def __init__(self, delayed not None, failure not None, edit not None):
        self._delayed = delayed
        self._failure = failure
        self._edit = edit
        self._known = Known()
        self.answered = 1
        self.answered_code = MEMBER_ID_REQUIRED

    cdef object _answer(self, object broker, object session, RequestHeader* header, object client_id, Reader* c):
        cdef ClassicRequestsBase requests = <ClassicRequestsBase?>groups_of(broker).classic
        cdef Joining joining = None
        cdef str member_id
        cdef bytes answer
        if header.api_version >= ID_REQUIRED:
            joining = _read(c, header.api_version, requests.last_id, self._known)
        if joining is None:
            return None
        if joining.member_id:
            return self._wait(requests, joining, session, header.api_version, client_id)
        member_id = requests.new_id(client_id, joining)
        if member_id is None:
            return None
        # Before the id is expected: memory may end here.
        answer = _id_required(header, member_id)
        requests.expect(joining, member_id)
        return answer

    cdef object _wait(
        self, ClassicRequestsBase requests, Joining joining, object session, int version, object client_id
    ):
        cdef object delayed = self._delayed(self._failure)
        cdef str host = "/" + <str?>session.peer_host
        if version < PROTOCOL_TYPE:
            delayed.edit = self._edit
        return delayed if requests.wait_to_join(joining, client_id or "", host, delayed) else None


def with_protocol(outcome not None):
    response = outcome.response
    if response.protocol_name is None:
        response.protocol_name = ""
    return outcome


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

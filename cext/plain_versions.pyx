"""ApiVersions, from frame to frame. Contracts are in plain_versions.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t

from kafka_shim.cext.bigendian cimport store_i32
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport Frame, PlainApi, Reader, has_no_tags, read_body, take_text, text_of

cdef enum:
    LENGTH_BYTES = 4
    CORRELATION_BYTES = 4
    # The first version with the name and the version of the client's software.
    NAMES_CLIENT = 3


cdef inline bint _is_alphanumeric(uint8_t byte) noexcept nogil:
    return b"0"[0] <= byte <= b"9"[0] or b"A"[0] <= byte <= b"Z"[0] or b"a"[0] <= byte <= b"z"[0]


cdef bint _is_valid(const uint8_t* text, int32_t size_bytes) noexcept nogil:
    """As `is_valid_name` of the handler: letters and digits, and - and . inside."""
    cdef int32_t at
    if size_bytes < 1 or not _is_alphanumeric(text[0]) or not _is_alphanumeric(text[size_bytes - 1]):
        return False
    for at in range(size_bytes):
        if not (_is_alphanumeric(text[at]) or text[at] == b"-"[0] or text[at] == b"."[0]):
            return False
    return True


cdef class PlainVersions(PlainApi):
    cdef object _frame_of

    def __init__(self, frame_of not None):
        self._frame_of = frame_of
        self.answered = 1

    cdef object serve(self, object broker, object session, RequestHeader* header, object client_id, Frame* frame):
        cdef Reader c
        if session.authenticator is not None:
            return None
        read_body(&c, frame, header)
        try:
            return self._answer(broker, session, header, &c)
        except Exception:
            return None         # the handler meets it again, and answers

    cdef object _answer(self, object broker, object session, RequestHeader* header, Reader* c):
        cdef const uint8_t* name = NULL
        cdef const uint8_t* software = NULL
        cdef int32_t name_bytes = 0
        cdef int32_t software_bytes = 0
        cdef bint names_client = header.api_version >= NAMES_CLIENT
        cdef bytes kept, answer
        if names_client and not (
            take_text(c, True, &name, &name_bytes)
            and _is_valid(name, name_bytes)
            and take_text(c, True, &software, &software_bytes)
            and _is_valid(software, software_bytes)
            and has_no_tags(c, True)
        ):
            return None
        kept = <bytes?>self._frame_of(broker, session.listener, header.api_version)
        if len(kept) < LENGTH_BYTES + CORRELATION_BYTES:
            raise ValueError("a frame without a correlation id")
        answer = PyBytes_FromStringAndSize(PyBytes_AS_STRING(kept), len(kept))
        store_i32(<uint8_t*>PyBytes_AS_STRING(answer) + LENGTH_BYTES, header.correlation_id)
        if names_client:
            session.client_software_name = text_of(name, name_bytes)
            session.client_software_version = text_of(software, software_bytes)
        return answer

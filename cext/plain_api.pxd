"""The fast path of one API, for C callers; `plain_api.pyi` has the contract.

The `take` functions read one field of a request in its frame, move the reader behind it, and return False if it is not
there or out of the ordinary, as a tagged field is: the codec then reads the request. `begin_answer` and `end_answer`
write the beginning and the end of the answer's frame."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

from kafka_shim.cext.bigendian cimport load_i16, load_i32, store_i32
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.wire cimport MAX_STRING_BYTES, Out, write_i8, write_i32

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    const void* PyUnicode_1BYTE_DATA(object text)

cdef enum:
    SHORT = 2                   # bytes of the length of a string
    LONG = 4                    # bytes of that of an array or of records
    # Requests of many small entries that their handlers serve in steps from so many bytes on, although the codec does
    # not take them for large. 4,000 entries of the smallest kind take some ten milliseconds.
    IN_STEPS_BYTES = 16 * 1024


# The fields that each request reads of the broker and of its faults. Tests pass other brokers: check the class first.
cdef class BrokerBase:
    cdef public object authorizer
    cdef public object clock
    cdef public object faults
    cdef public object groups
    cdef public object quotas


cdef class FaultsBase:
    cdef public bint armed


cdef inline bint is_armed(object faults) except -1:
    return (<FaultsBase>faults).armed if isinstance(faults, FaultsBase) else <bint>faults.armed


cdef inline object authorizer_of(object broker):
    return (<BrokerBase>broker).authorizer if isinstance(broker, BrokerBase) else broker.authorizer


cdef inline object clock_of(object broker):
    return (<BrokerBase>broker).clock if isinstance(broker, BrokerBase) else broker.clock


cdef inline object groups_of(object broker):
    return (<BrokerBase>broker).groups if isinstance(broker, BrokerBase) else broker.groups


# An answer, with what is done after it is sent: a call of this object.
cdef class FollowUp:
    cdef bytes answer


# Bytes of a buffer, whose holder keeps it. Most requests need no object of their own for them.
cdef struct Frame:
    Py_buffer* whole
    Py_ssize_t at
    Py_ssize_t size_bytes


cdef inline uint8_t* start_of(Frame* frame) noexcept:
    return <uint8_t*>frame.whole.buf + frame.at


cdef inline object slice_of(Frame* frame):
    """The frame as an object."""
    whole = <object>frame.whole.obj
    return whole if frame.size_bytes == frame.whole.len else whole[frame.at:frame.at + frame.size_bytes]


cdef class PlainApi:
    # The number of error codes in the last answer, and the one code that all of them are.
    cdef readonly Py_ssize_t answered
    cdef readonly int32_t answered_code

    cdef object serve(
        self, object broker, object session, RequestHeader* header, object client_id, Frame* frame
    )


# The holder of the buffer keeps it alive.
cdef struct Reader:
    uint8_t* at
    uint8_t* end


cdef class PlainMember(PlainApi):
    # What `serve` returns, of a request whose body is at the reader.
    cdef object _answer(self, object broker, object session, RequestHeader* header, object client_id, Reader* c)


cdef class PlainLookup(PlainApi):
    # What `serve` returns, of a request whose body is at the reader: bytes, or None if there is something to decide.
    cdef object _answer(self, object broker, RequestHeader* header, Reader* c, Out* out)


cdef class PlainAppend(PlainApi):
    # What `serve` returns, of a request whose body is at the reader.
    cdef object _answer(
        self, object broker, RequestHeader* header, Frame* frame, Reader* c, int64_t now_ms
    )


cdef inline void read_body(Reader* c, Frame* frame, RequestHeader* header) noexcept:
    c.at = start_of(frame) + header.body_at
    c.end = start_of(frame) + frame.size_bytes


cdef inline bint take(Reader* c, Py_ssize_t size_bytes) noexcept nogil:
    if size_bytes < 0 or c.end - c.at < size_bytes:
        return False
    c.at += size_bytes
    return True


cdef inline bint take_i32(Reader* c, int32_t* value) noexcept nogil:
    if not take(c, 4):
        return False
    value[0] = load_i32(c.at - 4)
    return True


cdef inline bint take_length(Reader* c, bint is_flexible, int length_bytes, int32_t* length) noexcept nogil:
    """-1 is null. `length_bytes` is SHORT or LONG."""
    cdef uint32_t packed = 0
    cdef int shift = 0
    cdef uint8_t byte
    if not is_flexible:
        if not take(c, length_bytes):
            return False
        length[0] = load_i16(c.at - 2) if length_bytes == SHORT else load_i32(c.at - 4)
        return True
    while shift < 28:           # four bytes hold all that a frame may
        if c.at >= c.end:
            return False
        byte = c.at[0]
        c.at += 1
        packed |= <uint32_t>(byte & 0x7F) << shift
        if byte < 0x80:
            length[0] = <int32_t>packed - 1
            return True
        shift += 7
    return False


cdef inline bint take_text(Reader* c, bint is_flexible, const uint8_t** text, int32_t* size_bytes) noexcept nogil:
    """A string of ASCII, or null, of which the size is -1. The codec says of other bytes whether they are UTF-8."""
    cdef uint8_t seen = 0
    cdef int32_t at
    if not take_length(c, is_flexible, SHORT, size_bytes) or not -1 <= size_bytes[0] <= MAX_STRING_BYTES:
        return False
    text[0] = c.at
    if size_bytes[0] > 0:
        if not take(c, size_bytes[0]):
            return False
        for at in range(size_bytes[0]):
            seen |= text[0][at]
    return seen < 0x80


cdef inline bint take_byte(Reader* c, uint8_t expected) noexcept nogil:
    """A byte that must be this one."""
    if c.at >= c.end or c.at[0] != expected:
        return False
    c.at += 1
    return True


cdef inline bint has_no_tags(Reader* c, bint is_flexible) noexcept nogil:
    return not is_flexible or take_byte(c, 0)


cdef inline str text_of(const uint8_t* text, int32_t size_bytes):
    """What `take_text` has read; None for null."""
    return None if size_bytes < 0 else PyUnicode_DecodeASCII(<const char*>text, size_bytes, NULL)


cdef inline str read_text(Reader* c, bint is_flexible):
    """What `take_text` reads; None if it is not there, or null."""
    cdef const uint8_t* text = NULL
    cdef int32_t size_bytes = 0
    return text_of(text, size_bytes) if take_text(c, is_flexible, &text, &size_bytes) else None


cdef inline str known_text(str known, const uint8_t* text, int32_t size_bytes):
    """As `text_of`: the string that is known, if it is the same, with the hash that it has already."""
    if (
        known is not None
        and size_bytes == PyUnicode_GET_LENGTH(known)
        and PyUnicode_IS_COMPACT_ASCII(known)
        and memcmp(PyUnicode_1BYTE_DATA(known), text, <size_t>size_bytes) == 0
    ):
        return known
    return text_of(text, size_bytes)


cdef inline str read_known(Reader* c, bint is_flexible, str known):
    """As `read_text`."""
    cdef const uint8_t* text = NULL
    cdef int32_t size_bytes = 0
    return known_text(known, text, size_bytes) if take_text(c, is_flexible, &text, &size_bytes) else None


cdef inline int begin_answer(Out* out, RequestHeader* header, bint is_flexible) except -1:
    """Room for the length, and the header of the answer."""
    write_i32(out, 0)
    write_i32(out, header.correlation_id)
    return write_i8(out, 0) if is_flexible else 0


cdef inline bytes end_answer(Out* out):
    """Returns the frame, with its length set."""
    store_i32(out.data, <int32_t>(out.size_bytes - 4))
    return PyBytes_FromStringAndSize(<const char*>out.data, out.size_bytes)

"""Reader and Writer of Kafka's protocol primitives. A read past the end of its bytes raises WireError."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT64_MAX
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import codecs

cdef extern from "Python.h":
    PyObject* PyUnicode_DecodeUTF8(const char* data, Py_ssize_t size, const char* errors)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size)
    bint PyErr_ExceptionMatches(object kind)
    object PyErr_NoMemory()
    void PyErr_Clear()
    void Py_DECREF(PyObject* o)
    double load_double "PyFloat_Unpack8"(const char* p, int little_endian) except? -1.0
    int store_double "PyFloat_Pack8"(double value, char* p, int little_endian) except -1


class WireError(ValueError):
    """Bytes from a peer that violate the protocol."""


class EncodeError(ValueError):
    """A value that the protocol cannot encode: out of range, null for a non-nullable field, or of the wrong type."""


class UnsupportedVersionError(ValueError):
    """A version that the message does not have, or a field value that the version cannot encode."""


cdef int fail_short(Cursor* c, Py_ssize_t wanted_bytes) except -1:
    raise WireError(f"{wanted_bytes} bytes wanted, {c.end - c.at} left")


cdef int fail_varint(Cursor* c) except -1:
    raise WireError("a varint does not end")


cdef int out_grow(Out* out, Py_ssize_t more_bytes) except -1:
    cdef Py_ssize_t wanted_bytes = out.size_bytes + more_bytes
    cdef Py_ssize_t capacity_bytes = out.capacity_bytes * 2
    cdef uint8_t* grown
    if capacity_bytes < wanted_bytes:
        capacity_bytes = wanted_bytes
    grown = <uint8_t*>realloc(out.heap, <size_t>capacity_bytes)
    if grown == NULL:
        raise MemoryError
    if out.heap == NULL:
        memcpy(grown, out.fixed, <size_t>out.size_bytes)
    out.heap = grown
    out.data = grown
    out.capacity_bytes = capacity_bytes
    return 0


cdef void out_free(Out* out) noexcept:
    free(out.heap)
    out.heap = NULL


def _java_replacement(error):
    """Java puts one U+FFFD for an encoded surrogate, whole or cut short, where Python puts one for each byte."""
    cdef Py_ssize_t at = error.start
    cdef bytes text = error.object
    if text[at] == 0xED and at + 1 < len(text) and 0xA0 <= text[at + 1] <= 0xBF:
        is_whole = at + 2 < len(text) and 0x80 <= text[at + 2] <= 0xBF
        return "\ufffd", at + (3 if is_whole else 2)
    return "\ufffd", error.end


codecs.register_error("kafka_shim.java", _java_replacement)


cdef object decode_string(const uint8_t* data, Py_ssize_t size_bytes):
    """As Kafka's ``new String(bytes, UTF_8)``: what is not UTF-8 is replaced by U+FFFD."""
    cdef PyObject* text = PyUnicode_DecodeUTF8(<const char*>data, size_bytes, NULL)
    if text == NULL:
        if not PyErr_ExceptionMatches(UnicodeDecodeError):
            return PyErr_NoMemory()
        PyErr_Clear()
        return PyBytes_FromStringAndSize(<const char*>data, size_bytes).decode("utf-8", "kafka_shim.java")
    result = <object>text
    # `result` took its own reference.
    Py_DECREF(text)
    return result


cdef object read_string(Cursor* c, bint compact):
    cdef int32_t length = 0
    read_short_length(c, compact, &length)
    if length < 0:
        return None
    if length > MAX_STRING_BYTES:
        raise WireError(f"a string of {length} bytes; the protocol allows {MAX_STRING_BYTES}")
    need(c, length)
    result = decode_string(c.at, length)
    c.at += length
    return result


cdef object read_bytes(Cursor* c, bint compact):
    cdef int32_t length = 0
    read_long_length(c, compact, &length)
    if length < 0:
        return None
    need(c, length)
    result = PyBytes_FromStringAndSize(<const char*>c.at, length)
    c.at += length
    return result


cdef int write_string(Out* out, bint compact, str value) except -1:
    cdef Py_ssize_t length = 0
    cdef const char* text
    if value is None:
        return write_short_length(out, compact, -1)
    text = PyUnicode_AsUTF8AndSize(value, &length)
    if text == NULL:
        if not PyErr_ExceptionMatches(UnicodeEncodeError):
            return -1  # no memory for its UTF-8
        PyErr_Clear()
        raise EncodeError("a string has a lone surrogate, which UTF-8 cannot carry")
    if length > MAX_STRING_BYTES:
        raise EncodeError(f"a string of {length} bytes; the protocol allows {MAX_STRING_BYTES}")
    write_short_length(out, compact, length)
    return write_raw(out, text, length)


cdef int write_bytes(Out* out, bint compact, object value) except -1:
    cdef Py_buffer view
    if value is None:
        return write_long_length(out, compact, -1)
    if PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0:
        return -1
    try:
        if view.len > 0x7FFFFFFE:
            raise EncodeError(f"{view.len} bytes; the protocol allows 2147483646")
        write_long_length(out, compact, view.len)
        write_raw(out, view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef class Reader:
    """Reads primitives in order from ``buffer[start:end]``. It holds the buffer as long as it exists.

    Strings and byte strings have four forms each: plain and ``compact_``, and ``nullable_`` of both, which may be None.
    """

    cdef Py_buffer view
    cdef Cursor c
    cdef bint held

    def __cinit__(self, buffer, Py_ssize_t start=0, end=None):
        cdef Py_ssize_t stop
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.held = True
        stop = self.view.len if end is None else end
        if start < 0 or stop < start or stop > self.view.len:
            raise ValueError(f"[{start}, {stop}) is not inside a buffer of {self.view.len} bytes")
        self.c.at = <const uint8_t*>self.view.buf + start
        self.c.end = <const uint8_t*>self.view.buf + stop

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    @property
    def position(self):
        """Index in the buffer of the next byte to read."""
        return self.c.at - <const uint8_t*>self.view.buf

    @property
    def remaining(self):
        """Bytes not read yet."""
        return self.c.end - self.c.at

    def int8(self):
        cdef int8_t value = 0
        read_i8(&self.c, &value)
        return value

    def int16(self):
        cdef int16_t value = 0
        read_i16(&self.c, &value)
        return value

    def int32(self):
        cdef int32_t value = 0
        read_i32(&self.c, &value)
        return value

    def int64(self):
        cdef int64_t value = 0
        read_i64(&self.c, &value)
        return value

    def uint8(self):
        cdef int8_t value = 0
        read_i8(&self.c, &value)
        return <uint8_t>value

    def uint16(self):
        cdef int16_t value = 0
        read_i16(&self.c, &value)
        return <uint16_t>value

    def uint32(self):
        cdef int32_t value = 0
        read_i32(&self.c, &value)
        return <uint32_t>value

    def uvarint(self):
        cdef uint32_t value = 0
        read_uvarint(&self.c, &value)
        return value

    def uvarlong(self):
        cdef uint64_t value = 0
        read_uvarlong(&self.c, &value)
        return value

    def varint(self):
        cdef uint32_t value = 0
        read_uvarint(&self.c, &value)
        return <int32_t>((value >> 1) ^ (0 - (value & 1)))

    def varlong(self):
        cdef uint64_t value = 0
        read_uvarlong(&self.c, &value)
        return <int64_t>((value >> 1) ^ (0 - (value & 1)))

    def float64(self):
        need(&self.c, 8)
        value = load_double(<const char*>self.c.at, 0)
        self.c.at += 8
        return value

    def boolean(self):
        """Any byte but zero is true, as Kafka reads it."""
        cdef int8_t value = 0
        read_i8(&self.c, &value)
        return value != 0

    def uuid(self):
        return self.raw(16)

    def raw(self, Py_ssize_t size_bytes):
        """The next bytes as they are."""
        if size_bytes < 0:
            raise ValueError("a negative size")
        need(&self.c, size_bytes)
        value = PyBytes_FromStringAndSize(<const char*>self.c.at, size_bytes)
        self.c.at += size_bytes
        return value

    def string(self):
        return not_null(read_string(&self.c, False))

    def nullable_string(self):
        return read_string(&self.c, False)

    def compact_string(self):
        return not_null(read_string(&self.c, True))

    def compact_nullable_string(self):
        return read_string(&self.c, True)

    def bytes(self):
        return not_null(read_bytes(&self.c, False))

    def nullable_bytes(self):
        return read_bytes(&self.c, False)

    def compact_bytes(self):
        return not_null(read_bytes(&self.c, True))

    def compact_nullable_bytes(self):
        return read_bytes(&self.c, True)

    def array_length(self):
        """Read a count of elements, -1 for null. An element takes at least one byte, so a count above the remaining
        bytes raises WireError."""
        cdef int32_t count = 0
        read_long_length(&self.c, False, &count)
        need(&self.c, count)
        return max(count, -1)

    def compact_array_length(self):
        cdef int32_t count = 0
        read_long_length(&self.c, True, &count)
        need(&self.c, count)
        return max(count, -1)

    def tags(self):
        """A section of tagged fields, as a dict from tag to bytes."""
        cdef uint32_t count = 0, tag = 0, size_bytes = 0
        read_uvarint(&self.c, &count)
        found = {}
        while count > 0:
            read_uvarint(&self.c, &tag)
            read_uvarint(&self.c, &size_bytes)
            found[tag] = self.raw(size_bytes)
            count -= 1
        return found


cdef object not_null(object value):
    if value is None:
        raise WireError("null where the protocol has no null")
    return value


cdef dict LIMITS = {
    "int8": (-0x80, 0x7F),
    "int16": (-0x8000, 0x7FFF),
    "int32": (-0x80000000, 0x7FFFFFFF),
    "int64": (INT64_MIN, INT64_MAX),
    "uint8": (0, 0xFF),
    "uint16": (0, 0xFFFF),
    "uint32": (0, 0xFFFFFFFF),
    "uint64": (0, UINT64_MAX),
}


cdef class Writer:
    """The counterpart of Reader: appends primitives; ``finish()`` returns the bytes."""

    cdef Out out

    def __cinit__(self):
        out_init(&self.out)

    def __dealloc__(self):
        out_free(&self.out)

    def __len__(self):
        return self.out.size_bytes

    cdef int integer(self, object value, str kind) except -1:
        cdef tuple limits = <tuple>LIMITS[kind]
        if not limits[0] <= value <= limits[1]:
            raise EncodeError(f"{value} does not fit {kind}")
        return 0

    def int8(self, value):
        self.integer(value, "int8")
        write_i8(&self.out, value)

    def int16(self, value):
        self.integer(value, "int16")
        write_i16(&self.out, value)

    def int32(self, value):
        self.integer(value, "int32")
        write_i32(&self.out, value)

    def int64(self, value):
        self.integer(value, "int64")
        write_i64(&self.out, value)

    def uint8(self, value):
        self.integer(value, "uint8")
        write_i8(&self.out, <int8_t><uint8_t>value)

    def uint16(self, value):
        self.integer(value, "uint16")
        write_i16(&self.out, <int16_t><uint16_t>value)

    def uint32(self, value):
        self.integer(value, "uint32")
        write_i32(&self.out, <int32_t><uint32_t>value)

    def uvarint(self, value):
        self.integer(value, "uint32")
        write_uvarint(&self.out, value)

    def uvarlong(self, value):
        self.integer(value, "uint64")
        write_uvarlong(&self.out, value)

    def varint(self, value):
        cdef int32_t plain
        self.integer(value, "int32")
        plain = value
        write_uvarint(&self.out, (<uint32_t>plain << 1) ^ <uint32_t>(plain >> 31))

    def varlong(self, value):
        cdef int64_t plain
        self.integer(value, "int64")
        plain = value
        write_uvarlong(&self.out, (<uint64_t>plain << 1) ^ <uint64_t>(plain >> 63))

    def float64(self, double value):
        reserve(&self.out, 8)
        store_double(value, <char*>self.out.data + self.out.size_bytes, 0)
        self.out.size_bytes += 8

    def boolean(self, bint value):
        write_i8(&self.out, value)

    def uuid(self, value):
        if len(value) != 16:
            raise EncodeError(f"a uuid of {len(value)} bytes")
        self.raw(value)

    def raw(self, value):
        cdef Py_buffer view
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        try:
            write_raw(&self.out, view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    def string(self, str value not None):
        write_string(&self.out, False, value)

    def nullable_string(self, str value):
        write_string(&self.out, False, value)

    def compact_string(self, str value not None):
        write_string(&self.out, True, value)

    def compact_nullable_string(self, str value):
        write_string(&self.out, True, value)

    def bytes(self, value not None):
        write_bytes(&self.out, False, value)

    def nullable_bytes(self, value):
        write_bytes(&self.out, False, value)

    def compact_bytes(self, value not None):
        write_bytes(&self.out, True, value)

    def compact_nullable_bytes(self, value):
        write_bytes(&self.out, True, value)

    def array_length(self, value):
        """A count of elements, -1 for null."""
        self.int32(value)

    def compact_array_length(self, value):
        self.uvarint(value + 1)

    def tags(self, found):
        """A section of tagged fields, from a dict of tag to bytes; written in the order of tags."""
        self.uvarint(len(found))
        for tag in sorted(found):
            self.uvarint(tag)
            self.uvarint(len(found[tag]))
            self.raw(found[tag])

    def finish(self):
        """What was written so far, as bytes."""
        return PyBytes_FromStringAndSize(<char*>self.out.data, self.out.size_bytes)

"""The fields of request headers, for C callers."""

from libc.stdint cimport int32_t, uint8_t

cdef enum:
    HEADER_KEYS = 256

cdef struct RequestHeader:
    int32_t api_key
    int32_t api_version
    int32_t correlation_id
    Py_ssize_t body_at


cdef class RequestHeaderParser:
    cdef int32_t flexible_from[HEADER_KEYS]

    # Returns the client id, and fills in the rest.
    cdef object read(self, const uint8_t* start, Py_ssize_t size_bytes, RequestHeader* header)

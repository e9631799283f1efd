"""The codec of requests and responses, for C callers. ``messages.pyx`` has the contracts."""

from libc.stdint cimport int32_t


cpdef decode_request(cls, int version, buffer, Py_ssize_t start)
cpdef list encode_response_frame(int32_t correlation_id, message, int version, bint patiently=*)

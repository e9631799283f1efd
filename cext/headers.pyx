"""Request headers: one call reads the fields of a frame that dispatch needs."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t

from kafka_shim.cext.wire cimport Cursor, decode_string, need, read_i16, read_i32, read_short_length, read_uvarint

from kafka_shim.cext.wire import WireError


cdef object read_client_id(Cursor* c):
    cdef int32_t length = 0
    read_short_length(c, False, &length)
    if length < 0:
        return None
    need(c, length)
    client_id = decode_string(c.at, length)
    c.at += length
    return client_id


cdef class RequestHeaderParser:
    """Reads request headers. `flexible_from` maps an API key to the first flexible version of that request."""

    def __cinit__(self, dict flexible_from):
        cdef int key
        for key in range(HEADER_KEYS):
            self.flexible_from[key] = flexible_from.get(key, -1)

    def parse(self, buffer, Py_ssize_t start=0, end=None):
        """Return (API key, API version, correlation id, client id, start of the body) of ``buffer[start:end]``.

        A null client id becomes "" (as in Kafka's ``RequestHeader.parse``). Tagged fields of the header are skipped.
        The version is not checked; the caller decides whether it is supported. Raises WireError for a truncated header
        and for an unknown API key, because the layout of its header is unknown.
        """
        cdef RequestHeader header
        cdef Py_buffer view
        cdef Py_ssize_t stop
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            stop = view.len if end is None else end
            if start < 0 or stop < start or stop > view.len:
                raise ValueError(f"[{start}, {stop}) is not inside a buffer of {view.len} bytes")
            client_id = self.read(<const uint8_t*>view.buf + start, stop - start, &header)
        finally:
            PyBuffer_Release(&view)
        return header.api_key, header.api_version, header.correlation_id, client_id, start + header.body_at

    cdef object read(self, const uint8_t* start, Py_ssize_t size_bytes, RequestHeader* header):
        cdef Cursor c
        cdef int16_t api_key = 0, api_version = 0
        cdef int32_t correlation_id = 0
        cdef uint32_t count = 0, tag = 0, tag_bytes = 0
        c.at = start
        c.end = start + size_bytes
        read_i16(&c, &api_key)
        read_i16(&c, &api_version)
        if api_key < 0 or api_key >= HEADER_KEYS or self.flexible_from[api_key] < 0:
            raise WireError(f"no request has the api key {api_key}")
        read_i32(&c, &correlation_id)
        client_id = read_client_id(&c)
        if api_version >= self.flexible_from[api_key]:
            read_uvarint(&c, &count)
            while count > 0:
                count -= 1
                read_uvarint(&c, &tag)
                read_uvarint(&c, &tag_bytes)
                need(&c, tag_bytes)
                c.at += tag_bytes
        header.api_key = api_key
        header.api_version = api_version
        header.correlation_id = correlation_id
        header.body_at = c.at - start
        return "" if client_id is None else client_id

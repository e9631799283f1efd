"""Random uuids, and uuids as Java prints them. Contracts are in uuids.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t

cdef enum:
    UUID_BYTES = 16
    TEXT_BYTES = 36

cdef const char* DIGITS = b"0123456789abcdef"


cdef const uint8_t* _bytes_of(bytes uuid) except NULL:
    if len(uuid) != UUID_BYTES:
        raise ValueError(f"a uuid of {len(uuid)} bytes")
    return <const uint8_t*>PyBytes_AS_STRING(uuid)


cpdef bytes version_4(bytes random):
    cdef bytes uuid = PyBytes_FromStringAndSize(<const char*>_bytes_of(random), UUID_BYTES)
    cdef uint8_t* p = <uint8_t*>PyBytes_AS_STRING(uuid)
    p[6] = p[6] & 0x0F | 0x40
    p[8] = p[8] & 0x3F | 0x80
    return uuid


cpdef str java_uuid_text(bytes uuid):
    cdef const uint8_t* p = _bytes_of(uuid)
    cdef char text[TEXT_BYTES]
    cdef Py_ssize_t at = 0
    cdef int number
    for number in range(UUID_BYTES):
        if number == 4 or number == 6 or number == 8 or number == 10:
            text[at] = c"-"
            at += 1
        text[at] = DIGITS[p[number] >> 4]
        text[at + 1] = DIGITS[p[number] & 0x0F]
        at += 2
    return text[:TEXT_BYTES].decode("ascii")

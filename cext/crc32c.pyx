"""CRC-32C of Kafka's record batches, with the fastest implementation that the CPU supports; see crc32c_native.c."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

cdef extern from "crc32c_native.h" nogil:
    ctypedef uint32_t (*kshim_crc32c_fn)(uint32_t, const uint8_t*, size_t) noexcept nogil
    ctypedef struct kshim_crc32c_implementation:
        const char* name
        kshim_crc32c_fn run
    kshim_crc32c_implementation[4] kshim_crc32c_implementations
    int kshim_crc32c_init() noexcept
    uint32_t kshim_crc32c_run(kshim_crc32c_fn run, uint32_t value, const uint8_t* data, size_t size) noexcept

cdef int implementation_count = kshim_crc32c_init()
cdef kshim_crc32c_fn fastest = kshim_crc32c_implementations[0].run

IMPLEMENTATIONS = tuple([
    kshim_crc32c_implementations[i].name.decode() for i in range(implementation_count)
])

# Below this a CRC takes less time than the wait for the GIL may: docs/adr/0004-gil-release.md.
cdef enum:
    RELEASE_GIL_BYTES = 1 << 20


cdef uint32_t crc32c_update(uint32_t value, const uint8_t* data, size_t size) noexcept nogil:
    return kshim_crc32c_run(fastest, value, data, size)


cdef uint32_t _run(kshim_crc32c_fn run, object data, uint32_t value) except? 0:
    cdef Py_buffer view
    cdef uint32_t result
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    if view.len > RELEASE_GIL_BYTES:
        with nogil:
            result = kshim_crc32c_run(run, value, <const uint8_t*>view.buf, view.len)
    else:
        result = kshim_crc32c_run(run, value, <const uint8_t*>view.buf, view.len)
    PyBuffer_Release(&view)
    return result


def crc32c(data, uint32_t value=0):
    return _run(fastest, data, value)


def crc32c_with(str name, data, uint32_t value=0):
    if name not in IMPLEMENTATIONS:
        raise ValueError(f"no CRC-32C implementation {name!r} on this CPU: {', '.join(IMPLEMENTATIONS)}")
    return _run(kshim_crc32c_implementations[IMPLEMENTATIONS.index(name)].run, data, value)

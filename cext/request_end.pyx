"""What every request passes: its frame is cut off, it gets a context and a reply. Contracts are in request_end.pyi."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_shim.cext.bigendian cimport load_i32

cdef enum:
    LENGTH_BYTES = 4


cdef class FrameEnd:
    cdef public object _dispatcher
    cdef public object _clock
    cdef public object _memory
    cdef public object _frame
    cdef public object _held
    cdef public object _task
    cdef public int64_t _max_frame_bytes
    cdef public int64_t last_active_ms
    cdef public bint _must_log_in
    cdef public bint _write_paused
    cdef public bint is_closing

    def get_buffer(self, sizehint):
        return self._memory.probe if self._frame is None and self._held is None else self._get_rest()

    def buffer_updated(self, Py_ssize_t nbytes):
        self.last_active_ms = self._clock.monotonic_ms()
        if self._frame is None and self._held is None:
            self._cut(self._memory.probe, nbytes)
        else:
            self._rest_updated(nbytes)

    def _consume(self, data, Py_ssize_t size_bytes):
        self._cut(data, size_bytes)

    cdef int _cut(self, object data, Py_ssize_t size_bytes) except -1:
        cdef Py_buffer view
        cdef Py_ssize_t at = 0
        cdef int64_t length
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if size_bytes > view.len:
                raise ValueError(f"{size_bytes} bytes are not inside a buffer of {view.len}")
            while (
                size_bytes - at >= LENGTH_BYTES
                and self._task is None
                and not self._write_paused
                and not self.is_closing
            ):
                length = load_i32(<const uint8_t*>view.buf + at)
                if not 0 <= length <= self._max_frame_bytes:
                    self.close(self._frame_refusal(data, at))
                    return 0
                if length > size_bytes - at - LENGTH_BYTES:
                    break
                frame = data[at + LENGTH_BYTES:at + LENGTH_BYTES + length]
                at += LENGTH_BYTES + length
                if self._must_log_in:
                    self._handle(frame)
                else:
                    self._handle_now(frame)
            if at < size_bytes and not self.is_closing:
                self._keep(data[at:size_bytes])
            return 0
        finally:
            PyBuffer_Release(&view)


@cython.final
@cython.freelist(16)
cdef class Reply:
    cdef public object parts
    cdef public object follow_up
    cdef public object waiting
    cdef public bint is_abandonable
    cdef public bint is_delayed

    def __init__(self, parts, follow_up=None, waiting=None, bint is_abandonable=False, bint is_delayed=False):
        self.parts = parts
        self.follow_up = follow_up
        self.waiting = waiting
        self.is_abandonable = is_abandonable
        self.is_delayed = is_delayed


cdef class ContextEnd:
    cdef public object broker
    cdef public object session
    cdef public int32_t api_key
    cdef public int32_t api_version
    cdef public int32_t correlation_id
    cdef public object client_id
    cdef public int64_t received_ms
    cdef public bint is_large
    cdef public object throttle

    def __init__(
        self, broker, session, int32_t api_key, int32_t api_version, int32_t correlation_id, client_id,
        int64_t received_ms
    ):
        self.broker = broker
        self.session = session
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.received_ms = received_ms

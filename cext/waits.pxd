"""What the task of a request awaits, for C callers. Contracts are in waits.pyi."""

cdef enum:
    NOT_OVER = -1


cdef class PauseBase:
    cdef public bint _asyncio_future_blocking
    cdef object _call
    cdef object _context
    cdef bint _is_cancelled
    cdef int _is_woken
    cdef object _loop

    cpdef end(self, bint is_woken)
    cdef int _go_on(self) except -1

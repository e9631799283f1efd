"""Slices and turns of the event loop, for C callers. Contracts are in turns.pyi."""

from libc.stdint cimport int64_t


cdef class SliceEnd:
    cdef public object _clock
    cdef public int64_t _ends_us
    cdef public int64_t _left
    cdef public int64_t _most

    cpdef bint is_over(self) except -1


cdef class MemberTurnsEnd:
    cdef public object _clock
    cdef public SliceEnd _slice
    cdef public object _waiting
    cdef public bint _has_turn
    cdef public bint _is_over
    cdef public int64_t _lost_ms

    cpdef bint takes(self) except -1

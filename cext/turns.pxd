"""Slices of long tasks, for C callers. Contracts are in turns.pyi."""

from libc.stdint cimport int64_t


cdef class SliceBase:
    cdef public object _clock
    cdef public int64_t _ends_us
    cdef public int64_t _left
    cdef public int64_t _most

    cpdef bint is_over(self) except -1

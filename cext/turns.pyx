"""Slices of long tasks. Contracts are in turns.pyi."""

from libc.stdint cimport int64_t


cdef class SliceBase:
    cpdef bint is_over(self) except -1:
        self._left -= 1
        return self._left <= 0 or <int64_t>self._clock.monotonic_us() >= self._ends_us

"""Slices and turns of the event loop. Contracts are in turns.pyi."""

from libc.stdint cimport int64_t


cdef class SliceEnd:
    cpdef bint is_over(self) except -1:
        self._left -= 1
        return self._left <= 0 or <int64_t>self._clock.monotonic_us() >= self._ends_us


cdef class MemberTurnsEnd:
    cpdef bint takes(self) except -1:
        cdef int64_t now_ms = self._clock.monotonic_ms()
        if not self._has_turn or now_ms >= self._lost_ms:
            self._begin(now_ms)
            self._is_over = bool(self._waiting)
        if self._is_over:
            return False
        self._is_over = self._slice.is_over()
        return True

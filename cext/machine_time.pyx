"""The clocks of the machine. Contracts are in machine_time.pyi."""

from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, clockid_t, timespec

cdef enum:
    MS_PER_S = 1_000
    US_PER_S = 1_000_000
    NS_PER_MS = 1_000_000
    NS_PER_US = 1_000


cdef inline int64_t _read_ms(clockid_t clock) except -1:
    cdef timespec now
    if clock_gettime(clock, &now) != 0:
        raise OSError("the machine's clock cannot be read")
    return <int64_t>now.tv_sec * MS_PER_S + now.tv_nsec // NS_PER_MS


cdef class MachineTime:
    def call_later(self, double delay_ms, callback, *args):
        loop = self._running_loop() if self._loop is None else self._loop
        return loop.call_later((delay_ms if delay_ms > 0 else 0.0) / MS_PER_S, callback, *args)

    def soon(self):
        return self._running_loop().call_soon

    cpdef int64_t now_ms(self) except? -1:
        return _read_ms(CLOCK_REALTIME)

    cpdef int64_t monotonic_ms(self) except? -1:
        return _read_ms(CLOCK_MONOTONIC)

    def monotonic_us(self):
        cdef timespec now
        if clock_gettime(CLOCK_MONOTONIC, &now) != 0:
            raise OSError("the machine's clock cannot be read")
        return <int64_t>now.tv_sec * US_PER_S + now.tv_nsec // NS_PER_US

"""The clocks of the machine for C callers. Contracts are in machine_time.pyi."""

from libc.stdint cimport int64_t


cdef class MachineTime:
    cdef public object _loop
    cdef public object _running_loop

    cpdef int64_t now_ms(self) except? -1
    cpdef int64_t monotonic_ms(self) except? -1


# Of any clock; that of the machine is read without a call of Python. A virtual one may have parts of a millisecond.
cdef inline double monotonic_ms(object clock) except? -1:
    return <double>(<MachineTime>clock).monotonic_ms() if isinstance(clock, MachineTime) else clock.monotonic_ms()


cdef inline int64_t now_ms(object clock) except? -1:
    return (<MachineTime>clock).now_ms() if isinstance(clock, MachineTime) else clock.now_ms()

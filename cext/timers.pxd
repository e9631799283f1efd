"""The timers of groups, for C callers. Contracts are in timers.pyi."""


cdef class TimerEntry:
    cdef public double armed_ms
    cdef public double due_ms
    cdef public double delay_ms
    cdef public object timer
    cdef public object key


cdef class TimersBase:
    cdef public object _clock
    cdef public dict _entries
    cdef public dict _deferred
    cdef public object _late
    cdef public bint _has_lost
    cdef public list _spare
    cdef public Py_ssize_t _most_spare

    cpdef schedule(self, tuple key, double delay_ms, bint only_if_absent=*)
    cpdef cancel(self, tuple key)
    cdef int _schedule(self, tuple key, double delay_ms, bint only_if_absent, double now_ms) except -1
    cdef TimerEntry _take_spare(self, double due_ms, double now_ms)
    cdef int _cancel(self, tuple key) except -1
    cpdef _arm(self, tuple key, TimerEntry entry, double delay_ms)

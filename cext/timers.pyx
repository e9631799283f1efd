"""The timers of groups, as far as every heartbeat moves them. Contracts are in timers.pyi."""

cimport cython

cdef enum:
    CANCEL = -1                 # of group/decision.py: the delay of a timer that is stopped


@cython.final
@cython.freelist(64)
cdef class TimerEntry:
    cdef public double armed_ms
    cdef public double due_ms
    cdef public double delay_ms
    cdef public object timer


cdef class TimersEnd:
    cdef public object _clock
    cdef public dict _entries
    cdef public dict _deferred
    cdef public object _late
    cdef public bint _has_lost

    def move(self, moves):
        for group_id, kind, member_id, delay_ms, only_if_absent in moves:
            if delay_ms == CANCEL:
                self.cancel((group_id, kind, member_id))
            else:
                self.schedule((group_id, kind, member_id), delay_ms, only_if_absent)

    cpdef schedule(self, tuple key, double delay_ms, bint only_if_absent=False):
        cdef TimerEntry entry
        cdef double due_ms
        if self._has_lost or self._late:
            self._catch_up()
        if self._deferred:
            if only_if_absent and key in self._deferred:
                return
            self._deferred.pop(key, None)
        due_ms = <double>self._clock.monotonic_ms() + delay_ms
        entry = self._entries.get(key)
        if entry is not None:
            if only_if_absent and entry.timer is not None:
                return
            entry.due_ms = due_ms
            entry.delay_ms = delay_ms
            if due_ms >= entry.armed_ms:
                return          # the callback sees the new due time
            former = entry.timer
            if former is not None:
                self._arm(key, entry, delay_ms)
                former.cancel()
                return
        entry = TimerEntry.__new__(TimerEntry)
        entry.armed_ms = due_ms
        entry.due_ms = due_ms
        entry.delay_ms = delay_ms
        self._arm(key, entry, delay_ms)
        self._entries[key] = entry

"""The timers of groups, as far as every heartbeat moves them. Contracts are in timers.pyi."""

cimport cython

from kafka_shim.cext.machine_time cimport monotonic_ms

cdef enum:
    CANCEL = -1                 # of group/decision.py: the delay of a timer that is stopped


@cython.final
@cython.freelist(64)
cdef class TimerEntry:
    pass


cdef class TimersBase:
    def move(self, moves):
        cdef double now_ms = monotonic_ms(self._clock)
        cdef double delay_ms
        for each in moves:
            group_id, kind, member_id, delay, only_if_absent = <tuple?>each
            delay_ms = delay
            if delay_ms == CANCEL:
                self._cancel((group_id, kind, member_id))
            else:
                self._schedule((group_id, kind, member_id), delay_ms, only_if_absent, now_ms)

    cpdef _arm(self, tuple key, TimerEntry entry, double delay_ms):
        entry.timer = self._clock.call_later(delay_ms, self._call, entry)
        entry.key = key
        entry.armed_ms = entry.due_ms

    def defer_kind(self, str deferred_kind not None, list moves not None):
        cdef TimerEntry entry
        cdef double due_ms, delay_ms
        cdef double now_ms = monotonic_ms(self._clock)
        cdef list others = []
        for move in moves:
            group_id, kind, member_id, delay, only_if_absent = <tuple?>move
            delay_ms = delay
            if kind != deferred_kind or delay_ms == CANCEL or only_if_absent:
                others.append(move)
                continue
            key = (group_id, kind, member_id)
            entry = self._entries.get(key)
            due_ms = now_ms + delay_ms
            if entry is None or due_ms < entry.armed_ms:
                self._deferred[key] = (due_ms, delay)
                continue
            entry.due_ms = due_ms
            entry.delay_ms = delay_ms
            if self._deferred:
                self._deferred.pop(key, None)
        return others

    cpdef schedule(self, tuple key, double delay_ms, bint only_if_absent=False):
        self._schedule(key, delay_ms, only_if_absent, monotonic_ms(self._clock))

    cdef int _schedule(self, tuple key, double delay_ms, bint only_if_absent, double now_ms) except -1:
        cdef TimerEntry entry
        cdef double due_ms
        if self._has_lost or self._late:
            self._catch_up()
        if self._deferred:
            if only_if_absent and key in self._deferred:
                return 0
            self._deferred.pop(key, None)
        due_ms = now_ms + delay_ms
        entry = self._entries.get(key)
        if entry is not None:
            if only_if_absent and entry.timer is not None:
                return 0
            entry.due_ms = due_ms
            entry.delay_ms = delay_ms
            if due_ms >= entry.armed_ms:
                return 0        # the callback sees the new due time
            former = entry.timer
            if former is not None:
                self._arm(key, entry, delay_ms)
                former.cancel()
                return 0
        entry = self._take_spare(due_ms, now_ms)
        if entry is None:
            entry = TimerEntry.__new__(TimerEntry)
            entry.armed_ms = due_ms
            entry.due_ms = due_ms
            entry.delay_ms = delay_ms
            self._arm(key, entry, delay_ms)
        else:
            entry.key = key
            entry.due_ms = due_ms
            entry.delay_ms = delay_ms
        self._entries[key] = entry
        return 0

    cdef TimerEntry _take_spare(self, double due_ms, double now_ms):
        """Returns one whose timer of the clock is to come before this time, or None."""
        cdef TimerEntry entry
        while self._spare:
            entry = <TimerEntry?>self._spare[len(self._spare) - 1]
            if entry.armed_ms > due_ms:
                return None
            self._spare.pop()
            if entry.armed_ms > now_ms:
                return entry
            entry.timer.cancel()
            entry.timer = None
        return None

    cpdef cancel(self, tuple key):
        self._cancel(key)

    cdef int _cancel(self, tuple key) except -1:
        cdef TimerEntry entry
        if self._deferred:
            self._deferred.pop(key, None)
        entry = self._entries.pop(key, None)
        if entry is None or entry.timer is None:
            return 0
        if len(self._spare) < self._most_spare:
            entry.key = None
            try:
                self._spare.append(entry)
                return 0
            except MemoryError:
                pass
        entry.timer.cancel()
        entry.timer = None
        return 0

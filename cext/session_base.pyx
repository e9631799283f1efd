"""What each append and each Fetch has to do with a fetch session. Contracts are in session_base.pyi."""


cdef class SessionBase:
    def take_turn(self):
        cdef int64_t turn = self.next_turn
        self.next_turn = turn + 1
        return turn


cdef class CachedBase:
    def mark_changed(self):
        cdef SessionBase session = self.session
        if session is None:
            return
        try:
            session.changed[self] = None
            if session.waiters:
                for waiter in session.waiters:
                    waiter.wake()
        except MemoryError:
            session.reader = None   # the next request reads all partitions

"""The answers that leave together at the end of a turn. Contracts are in held_answers.pyi."""

from libc.stdint cimport int64_t

cdef enum:
    # Requests that a turn has served for which the next one holds its answers.
    CROWD = 8
    # The most connections whose answers are held.
    MOST_HELD = 16
    # Without a crowd one turn is counted in so many requests, of those that came of another connection than the one
    # before: to be called when a turn ends costs a tenth of a small Produce, and another look at the sockets.
    CHANGES_PER_COUNT = 64
    # A turn that takes longer had other work than requests of the fast paths.
    MOST_END_US = 300
    MOST_REQUEST_US = 30


cdef class Answering:
    cdef int _send_held(self) except -1:
        raise NotImplementedError("abstract: a connection sends here")


cdef class HeldAnswers:
    def __init__(self, clock not None):
        self._clock = None if clock.is_virtual else clock
        self._connections = []
        self._others = []

    cdef bint count(self, Answering connection) except -1:
        if not self._is_counting and not self._begin(connection):
            return False
        self._served += 1
        return self._is_crowded

    cdef bint _begin(self, Answering connection) except -1:
        """Have `_end` called when this turn is over, if it is to be counted."""
        cdef bint will_end = False
        if self._clock is None:
            return False
        if not self._is_crowded and not self._is_at_start:
            if <void*>connection == self._last:
                return False
            self._last = <void*>connection
            self._changes += 1
            if self._changes < CHANGES_PER_COUNT:
                return False
        try:
            self._clock.soon()(self._end)
            will_end = True
        except MemoryError:
            self._is_crowded = self._is_at_start = False
        if not will_end:
            return False
        self._begun_us = self._clock.monotonic_us()
        self._changes = 0
        self._served = 0
        self._is_counting = True
        return True

    def _end(self):
        cdef int64_t took_us = <int64_t>self._clock.monotonic_us() - self._begun_us
        self._is_counting = False
        if self._is_at_start:
            self._is_crowded = self._served >= CROWD and took_us <= MOST_END_US + self._served * MOST_REQUEST_US
        # Else the turn had begun before; the next request is the first of its turn.
        self._is_at_start = self._is_crowded or not self._is_at_start
        self.flush()

    cdef int hold(self, Answering connection) except -1:
        try:
            self._connections.append(connection)
        except MemoryError:
            connection._send_held()
        if len(self._connections) >= MOST_HELD:
            self.flush()
        return 0

    cdef int flush(self) except -1:
        cdef list connections = self._connections
        if not connections:
            return 0
        # What sends may have others held.
        self._connections, self._others = self._others, connections
        for connection in connections:
            (<Answering>connection)._send_held()
        connections.clear()
        return 0

"""The answers that leave together at the end of a turn, for C callers. Contracts are in held_answers.pyi."""

from libc.stdint cimport int64_t


# A connection whose answers may be held.
cdef class Answering:
    # Send them. What that raises is the connection's.
    cdef int _send_held(self) except -1


cdef class HeldAnswers:
    cdef object _clock
    cdef list _connections
    # As long as it is empty, the next `_connections`.
    cdef list _others
    # The connection of the request before. Only compared.
    cdef void* _last
    cdef Py_ssize_t _changes
    cdef Py_ssize_t _served
    cdef int64_t _begun_us
    cdef bint _is_counting
    # Whether the count began, or begins, with the first request of a turn.
    cdef bint _is_at_start
    # Whether the answers of this turn are held.
    cdef bint _is_crowded

    # Count a request. Returns whether its answer may be held.
    cdef bint count(self, Answering connection) except -1

    cdef bint _begin(self, Answering connection) except -1

    # Hold the answers of a connection.
    cdef int hold(self, Answering connection) except -1

    # Have all of them sent.
    cdef int flush(self) except -1

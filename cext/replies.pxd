"""What a handler gets and returns, and what the connection sends, for C callers. Contracts are in replies.pyi."""

cimport cython
from libc.stdint cimport int32_t, int64_t


@cython.final
cdef class Context:
    cdef public object broker
    cdef public object session
    cdef public int32_t api_key
    cdef public int32_t api_version
    cdef public int32_t correlation_id
    cdef public object client_id
    cdef public int64_t received_ms
    cdef public int64_t size_bytes
    cdef public bint is_large
    cdef public object throttle
    cdef public object done


@cython.final
cdef class Outcome:
    cdef public object response
    cdef public object flushes
    cdef public object follow_up


cdef class DelayedBase:
    cdef object _failure
    cdef object _then
    cdef object _soon
    cdef object _error
    cdef dict _purgatory
    # Those of the request, once it waits.
    cdef Context context
    cdef object api
    cdef object request
    cdef public object edit
    cdef public object measured
    cdef readonly Outcome outcome

    cpdef bint complete(self, response, flushes=*) except -1
    cdef int _wake(self) except -1
    cdef int _leave_purgatory(self) except -1
    cdef int _go_on(self) except -1
    cpdef Outcome result(self)
    # The frame of an answer that is only to be written, or None.
    cdef bytes frame(self, Context context)


@cython.final
cdef class Reply:
    cdef public object parts
    cdef public object follow_up
    cdef public object waiting
    cdef readonly DelayedBase delayed
    cdef public bint is_abandonable
    cdef public bint is_delayed
    # The answer of a fast path, after which nothing is left to do.
    cdef public bint is_plain

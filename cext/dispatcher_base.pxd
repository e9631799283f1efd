"""The way of a request on which nothing is out of the ordinary, for C callers. Contracts are in dispatcher_base.pyi."""

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.headers cimport HEADER_KEYS, RequestHeader, RequestHeaderParser
from kafka_shim.cext.held_answers cimport HeldAnswers
from kafka_shim.cext.plain_api cimport FollowUp, Frame, PlainApi
from kafka_shim.cext.replies cimport Context, DelayedBase, Outcome, Reply


@cython.final
cdef class RequestCounts:
    cdef int64_t _counts[HEADER_KEYS]


cdef class ApiBase:
    cdef public int32_t key
    cdef public int32_t first
    cdef public int32_t last
    cdef public bint is_loaded
    cdef public tuple cluster_operations
    cdef public PlainApi plain
    cdef public object handle
    cdef public object request
    cdef public object response


cdef class DispatcherBase:
    cdef readonly object broker
    cdef readonly dict _table
    cdef RequestHeaderParser _headers
    cdef object _shows
    cdef dict _shown
    cdef object _clock
    cdef object _faults
    cdef RequestCounts _requests
    cdef readonly HeldAnswers held_answers
    # Whether a class above this one encodes in its own way, and whether it has its own `handle`.
    cdef bint has_own_encode
    cdef bint has_own_handle

    # A Reply, or the answer of a fast path, after which nothing is left to do.
    cdef object handle_frame(self, object session, Frame* request_frame)
    cdef Reply _followed(self, ApiBase api, int32_t api_key, FollowUp done)
    cdef Context _context(self, object session, RequestHeader* header, object client_id, object done)
    cdef bint _goes_in_steps(self, int32_t api_key, Py_ssize_t frame_bytes) noexcept
    cdef bint _is_plain(self) except -1
    cdef bint _shows_requests(self) except -1
    cdef object _serve(self, Context context, ApiBase api, object request)
    cdef Reply _delay(self, Context context, ApiBase api, object request, DelayedBase delayed)
    cdef Reply _answer(self, Context context, Outcome outcome)
    cdef object _encoded(self, Context context, object response)
    cdef list _encode_frame(self, Context context, object response)

"""Answers to requests that waited, for C callers. Contracts are in late_answers.pyi."""

from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.wire cimport Out


cdef class LateAnswer:
    cdef object _message

    # The whole frame; or None if the codec has to write it.
    cdef bytes frame(self, int32_t correlation_id, int version)
    # From the header to the end. Returns False if the codec has to write it.
    cdef bint _write(self, Out* out, RequestHeader* header) except -1
    cdef object _made(self)
    cpdef object message(self)


# What all members of a generation are told alike.
cdef class Generation:
    cdef int64_t generation_id
    cdef str protocol_type
    cdef str protocol
    cdef str leader_id


cdef class JoinAnswer(LateAnswer):
    cdef object _response
    cdef object _row
    cdef Generation _generation
    cdef str _member_id
    # Member id, instance id and metadata of each member; None for all but the leader.
    cdef list _members

    cdef int _write_members(self, Out* out, int version, bint is_flexible) except -1


cdef class SyncAnswer(LateAnswer):
    cdef object _response
    cdef str _protocol_type
    cdef str _protocol
    cdef bytes _assignment


# The whole answer of a SyncGroup without an error.
cdef int write_assignment(
    Out* out, RequestHeader* header, str protocol_type, str protocol, bytes assignment
) except -1
cdef Generation new_generation(int64_t generation_id, str protocol_type, str protocol, str leader_id)
# `members` may be None. `response` and `row` are the classes of the message and of its entries.
cdef JoinAnswer new_join_answer(object response, object row, Generation generation, str member_id, list members)
cdef SyncAnswer new_sync_answer(object response, str protocol_type, str protocol, bytes assignment)

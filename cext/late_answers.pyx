"""Answers to requests that waited. Contracts are in late_answers.pyi."""

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport begin_answer, end_answer
from kafka_shim.cext.wire cimport (
    Out,
    out_free,
    out_init,
    write_bytes,
    write_i8,
    write_i16,
    write_i32,
    write_string,
    write_uvarint,
)

cdef enum:
    # Versions of JoinGroup with a new field, or another form.
    JOIN_THROTTLE_TIME = 2
    JOIN_STATIC_MEMBERS = 5
    JOIN_FLEXIBLE = 6
    JOIN_PROTOCOL_TYPE = 7
    JOIN_SKIP_ASSIGNMENT = 9
    # The greatest generation that a field holds.
    INT32_MAX = 0x7FFFFFFF
    # Of SyncGroup.
    SYNC_THROTTLE_TIME = 1
    SYNC_FLEXIBLE = 4
    SYNC_PROTOCOL = 5


cdef class LateAnswer:
    cdef bytes frame(self, int32_t correlation_id, int version):
        cdef RequestHeader header
        cdef Out out
        header.api_version, header.correlation_id = version, correlation_id
        out_init(&out)
        try:
            return end_answer(&out) if self._write(&out, &header) else None
        except Exception:
            return None             # the codec meets it again
        finally:
            out_free(&out)

    cdef bint _write(self, Out* out, RequestHeader* header) except -1:
        raise NotImplementedError("abstract: an answer is written here")

    cdef object _made(self):
        raise NotImplementedError("abstract: a message is made here")

    cpdef object message(self):
        if self._message is None:
            self._message = self._made()
        return self._message

    def written(self, int32_t correlation_id, int version):
        return self.frame(correlation_id, version)

    def __getattr__(self, str name not None):
        return getattr(self.message(), name)


@cython.final
cdef class Generation:
    pass


@cython.final
cdef class JoinAnswer(LateAnswer):
    cdef bint _write(self, Out* out, RequestHeader* header) except -1:
        cdef int version = header.api_version
        cdef bint is_flexible = version >= JOIN_FLEXIBLE
        if self._generation.protocol is None or self._generation.generation_id > INT32_MAX:
            return False            # the codec's
        begin_answer(out, header, is_flexible)
        if version >= JOIN_THROTTLE_TIME:
            write_i32(out, 0)
        write_i16(out, 0)           # no error
        write_i32(out, <int32_t>self._generation.generation_id)
        if version >= JOIN_PROTOCOL_TYPE:
            write_string(out, True, self._generation.protocol_type)
        write_string(out, is_flexible, self._generation.protocol)
        write_string(out, is_flexible, self._generation.leader_id)
        if version >= JOIN_SKIP_ASSIGNMENT:
            write_i8(out, 0)
        write_string(out, is_flexible, self._member_id)
        self._write_members(out, version, is_flexible)
        if is_flexible:
            write_i8(out, 0)
        return True

    cdef int _write_members(self, Out* out, int version, bint is_flexible) except -1:
        cdef list members = self._members
        cdef Py_ssize_t count = 0 if members is None else len(members)
        cdef tuple member
        if is_flexible:
            write_uvarint(out, <unsigned int>count + 1)
        else:
            write_i32(out, <int32_t>count)
        if count == 0:
            return 0
        for each in members:
            member = <tuple>each
            write_string(out, is_flexible, <str?>member[0])
            if version >= JOIN_STATIC_MEMBERS:
                write_string(out, is_flexible, member[1])
            write_bytes(out, is_flexible, member[2])
            if is_flexible:
                write_i8(out, 0)
        return 0

    cdef object _made(self):
        cdef list rows = []
        if self._members is not None:
            for member_id, instance_id, metadata in self._members:
                rows.append(self._row(member_id=member_id, group_instance_id=instance_id, metadata=metadata))
        return self._response(
            generation_id=self._generation.generation_id,
            protocol_type=self._generation.protocol_type,
            protocol_name=self._generation.protocol,
            leader=self._generation.leader_id,
            member_id=self._member_id,
            members=rows,
        )


@cython.final
cdef class SyncAnswer(LateAnswer):
    cdef bint _write(self, Out* out, RequestHeader* header) except -1:
        write_assignment(out, header, self._protocol_type, self._protocol, self._assignment)
        return True

    cdef object _made(self):
        return self._response(
            protocol_type=self._protocol_type, protocol_name=self._protocol, assignment=self._assignment
        )


cdef int write_assignment(
    Out* out, RequestHeader* header, str protocol_type, str protocol, bytes assignment
) except -1:
    cdef bint is_flexible = header.api_version >= SYNC_FLEXIBLE
    begin_answer(out, header, is_flexible)
    if header.api_version >= SYNC_THROTTLE_TIME:
        write_i32(out, 0)
    write_i16(out, 0)               # no error
    if header.api_version >= SYNC_PROTOCOL:
        write_string(out, True, protocol_type)
        write_string(out, True, protocol)
    write_bytes(out, is_flexible, assignment)
    if is_flexible:
        write_i8(out, 0)
    return 0


cdef Generation new_generation(int64_t generation_id, str protocol_type, str protocol, str leader_id):
    cdef Generation generation = Generation.__new__(Generation)
    generation.generation_id = generation_id
    generation.protocol_type = protocol_type
    generation.protocol = protocol
    generation.leader_id = leader_id
    return generation


cdef JoinAnswer new_join_answer(object response, object row, Generation generation, str member_id, list members):
    cdef JoinAnswer answer = JoinAnswer.__new__(JoinAnswer)
    answer._response = response
    answer._row = row
    answer._generation = generation
    answer._member_id = member_id
    answer._members = members
    return answer


cdef SyncAnswer new_sync_answer(object response, str protocol_type, str protocol, bytes assignment):
    cdef SyncAnswer answer = SyncAnswer.__new__(SyncAnswer)
    answer._response = response
    answer._protocol_type = protocol_type
    answer._protocol = protocol
    answer._assignment = assignment
    return answer

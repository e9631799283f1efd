"""The requests of members of classic groups that only wait, for C callers. Contracts are in classic_requests.pyi."""

from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.classic_members cimport ClassicGroupBase
from kafka_shim.cext.timers cimport TimersBase


cdef class GroupsBase:
    cdef public dict by_id
    cdef public bint is_current


cdef class PartitionCountBase:
    cdef public Py_ssize_t known


# The fields of a JoinGroup of a dynamic member. Without an id it has no metadata either, only how much there is of it.
cdef class Joining:
    cdef readonly str group_id
    cdef readonly int32_t session_timeout_ms
    cdef readonly int32_t rebalance_timeout_ms
    cdef readonly str member_id
    cdef readonly str protocol_type
    cdef readonly list protocols
    cdef readonly int64_t metadata_bytes
    cdef readonly ClassicGroupBase group


cdef class Syncing:
    cdef readonly str group_id
    cdef readonly int32_t generation_id
    cdef readonly str member_id
    cdef readonly str instance_id
    cdef readonly str protocol_type
    cdef readonly str protocol_name
    # Of the answer, if it is there at once.
    cdef readonly object group_protocol_type
    cdef readonly object group_protocol
    cdef readonly bytes assignment


cdef class ClassicRequestsBase:
    cdef object _clock
    cdef object _config
    cdef int64_t _least_session_ms
    cdef int64_t _longest_session_ms
    cdef PartitionCountBase _partitions
    cdef dict _by_partition
    cdef dict _purgatory
    cdef TimersBase _timers
    cdef dict _limits
    cdef str _join
    cdef str _session
    cdef str _sync
    # Random bytes of ids, and how many of them are used.
    cdef bytes _random
    cdef Py_ssize_t _random_at
    # The group that was asked for last, and where it is if there are so many partitions: its members come together.
    cdef readonly str last_id
    cdef Py_ssize_t _last_count
    cdef int32_t _last_partition

    cdef bytes _id_bytes(self)
    cdef GroupsBase _current(self, str group_id)
    cdef ClassicGroupBase _group_in(self, GroupsBase groups, str group_id)
    cdef bint _has_session(self, Joining joining) except -1
    cpdef str new_id(self, client_id, Joining joining)
    cpdef expect(self, Joining joining, str member_id)
    cpdef bint wait_to_join(self, Joining joining, str client_id, str client_host, delayed) except -1
    cpdef has_joined(self, ClassicGroupBase group, str group_id, str member_id)
    cpdef bint wait_to_sync(self, Syncing syncing, delayed) except -1
    cpdef bint keep(self, str group_id, str member_id, str instance_id, int32_t generation_id) except -1
    cpdef bint assigned(self, Syncing syncing) except -1

"""Members of classic groups for C callers. Contracts are in classic_members.pyi."""

from libc.stdint cimport int64_t


cdef class ClassicMember:
    cdef readonly str member_id
    cdef readonly str instance_id
    cdef readonly str client_id
    cdef readonly str client_host
    cdef public int64_t rebalance_timeout_ms
    cdef public int64_t session_timeout_ms
    cdef public list protocols
    cdef public bytes assignment
    cdef public object awaiting_join
    cdef public object awaiting_sync
    cdef public bint is_new

    cpdef object metadata(self, protocol)


cdef class ClassicGroupBase:
    cdef public object state
    cdef public object previous_state
    cdef public int64_t generation_id
    cdef public object protocol_type
    cdef public object protocol
    cdef public object leader_id
    cdef public dict members
    cdef public set joining
    cdef public dict protocol_counts
    cdef public int64_t metadata_bytes
    cdef public dict static_members
    cdef public object pending_joins
    cdef public set pending_syncs
    cdef public bint new_member_added

    cdef int _add(self, ClassicMember member, protocol_type) except -1
    cdef bint _forget(self, str member_id, instance_id) except -1
    cdef int _remove(self, str member_id) except -1
    cdef int _await_join(self, ClassicMember member, token) except -1
    cdef list _told_to_leader(self)
    cdef object _joined(self, response, str member_id, list rows)
    cdef int _count_protocols(self, ClassicMember member, int change) except -1
    cdef int _count_protocol(self, name, int change) except -1
    cdef bint _accepts(self, str member_id, int64_t max_size) except -1
    cdef bint _has_room(self, str member_id, int64_t metadata_bytes, int64_t most_bytes) except -1
    cdef bint _supports(self, str protocol_type, list protocols) except -1
    cdef int _admit(self, ClassicMember member, protocol_type, token) except -1
    # Whether this is the first join phase of an empty group, and all who were given an id have joined.
    cdef bint is_gathered(self) except -1
    # Whether the group prepares a rebalance and expects somebody with this id.
    cdef bint expects(self, str member_id) except -1
    # Whether a new member is only to be expected.
    cdef bint may_expect(
        self, str protocol_type, list protocols, int64_t metadata_bytes, int64_t max_size, int64_t most_bytes,
        Py_ssize_t most_expected,
    ) except -1
    cdef bint _wait_to_join(
        self, ClassicMember member, str protocol_type, token, int64_t max_size, int64_t most_bytes
    ) except -1
    cdef ClassicMember _in_generation(
        self, str member_id, str instance_id, int64_t generation_id, str protocol_type, str protocol_name
    )
    cdef bint _wait_to_sync(
        self, str member_id, str instance_id, int64_t generation_id, str protocol_type, str protocol_name, token
    ) except -1
    # The member that a heartbeat keeps alive, if its answer is one without an error; or None.
    cdef ClassicMember kept_member(self, str member_id, str instance_id, int64_t generation_id)
    # The member of a stable group that may have its assignment; or None.
    cdef ClassicMember stable_member(
        self, str member_id, str instance_id, int64_t generation_id, str protocol_type, str protocol_name
    )


# A dynamic member without an assignment.
cdef ClassicMember new_member(
    str member_id, str client_id, str client_host, int64_t rebalance_timeout_ms, int64_t session_timeout_ms,
    list protocols
)
cpdef int64_t size_of(list protocols) except -1

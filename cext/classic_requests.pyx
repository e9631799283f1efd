"""The requests of members of classic groups that only wait. Contracts are in classic_requests.pyi."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t

from kafka_shim.cext.classic_members cimport ClassicGroupBase, ClassicMember, new_member
from kafka_shim.cext.java_hash cimport partition_of
from kafka_shim.cext.uuids cimport java_uuid_text, version_4

cdef enum:
    UUID_BYTES = 16
    # Read at once: each read is a system call.
    RANDOM_BYTES = 64 * UUID_BYTES


cdef class GroupsBase:
    def __enter__(self):
        self.is_current = False

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.is_current = True
        else:
            self._failed(kind, error)


cdef class PartitionCountBase:
    pass


@cython.final
@cython.freelist(4)
cdef class Joining:
    pass


@cython.final
@cython.freelist(4)
cdef class Syncing:
    pass


cdef class ClassicRequestsBase:
    def __init__(
        self,
        runtime,
        tuple timers not None,
        limits,
    ):
        self._clock = runtime.clock
        self._config = runtime.config
        self._partitions = runtime.partitions
        self._by_partition = runtime.loader.by_partition
        self._purgatory = runtime.purgatory
        self._timers = runtime.timers
        self._limits = limits.__dict__
        self._least_session_ms = runtime.config.group_min_session_timeout_ms
        self._longest_session_ms = runtime.config.group_max_session_timeout_ms
        self._random = b""
        self._join, self._session, self._sync = timers

    cdef GroupsBase _current(self, str group_id):
        """The groups beside which this one is, if they are loaded and what the log says; or None."""
        cdef Py_ssize_t count = self._partitions.known
        cdef GroupsBase groups
        if count == 0 or not group_id:
            return None
        if group_id is not self.last_id or count != self._last_count:
            self._last_partition = partition_of(group_id, count)
            self._last_count = count
            self.last_id = group_id
        groups = <GroupsBase?>self._by_partition.get(self._last_partition)
        return groups if groups is not None and groups.is_current else None

    cdef ClassicGroupBase _group_in(self, GroupsBase groups, str group_id):
        """None if there is none, or one of another kind."""
        if groups is None:
            return None
        group = groups.by_id.get(group_id)
        return <ClassicGroupBase>group if isinstance(group, ClassicGroupBase) else None

    cdef bint _has_session(self, Joining joining) except -1:
        return self._least_session_ms <= joining.session_timeout_ms <= self._longest_session_ms

    cdef bytes _id_bytes(self):
        """Random bytes of one id. The clock's randomness gives those of many."""
        cdef bytes found
        if len(self._random) - self._random_at < UUID_BYTES:
            self._random = self._clock.random.bytes_of(RANDOM_BYTES)
            self._random_at = 0
        found = PyBytes_FromStringAndSize(PyBytes_AS_STRING(self._random) + self._random_at, UUID_BYTES)
        self._random_at += UUID_BYTES
        return found

    cpdef str new_id(self, client_id, Joining joining):
        cdef ClassicGroupBase group = self._group_in(self._current(joining.group_id), joining.group_id)
        if group is None or not self._has_session(joining) or not group.may_expect(
            joining.protocol_type, joining.protocols, joining.metadata_bytes, self._config.group_max_size,
            self._limits["MAX_METADATA_BYTES"], self._limits["MAX_PENDING_JOINS"],
        ):
            return None
        joining.group = group
        uuid = java_uuid_text(version_4(self._id_bytes()))
        return f"{'' if client_id is None else <str?>client_id}-{uuid}"

    cpdef expect(self, Joining joining, str member_id):
        cdef tuple key = (joining.group_id, self._session, member_id)
        self._timers.schedule(key, joining.session_timeout_ms)
        try:
            joining.group.pending_joins[member_id] = None
        except MemoryError:
            self._timers.cancel(key)
            raise

    cpdef bint wait_to_join(self, Joining joining, str client_id, str client_host, delayed) except -1:
        cdef GroupsBase groups = self._current(joining.group_id)
        cdef ClassicGroupBase group = self._group_in(groups, joining.group_id)
        cdef ClassicMember member
        cdef bint waits
        if group is None or not group.expects(joining.member_id) or not self._has_session(joining):
            return False
        member = new_member(
            joining.member_id, client_id, client_host, joining.rebalance_timeout_ms, joining.session_timeout_ms,
            joining.protocols,
        )
        groups.is_current = False       # memory may end anywhere: then the log is read again
        try:
            waits = group._wait_to_join(
                member, joining.protocol_type, delayed, self._config.group_max_size,
                self._limits["MAX_METADATA_BYTES"],
            )
            if waits:
                self.has_joined(group, joining.group_id, joining.member_id)
                delayed.park(self._purgatory, joining.group_id)
        except MemoryError:
            raise
        except BaseException:
            groups.is_current = True
            raise
        groups.is_current = True
        return waits

    cpdef has_joined(self, ClassicGroupBase group, str group_id, str member_id):
        self._timers.schedule((group_id, self._session, member_id), self._limits["NEW_MEMBER_JOIN_TIMEOUT_MS"])
        if group.is_gathered() and self._config.group_initial_rebalance_delay_ms == 0:
            self._timers.schedule((group_id, self._join, ""), 0)

    cpdef bint wait_to_sync(self, Syncing syncing, delayed) except -1:
        cdef ClassicGroupBase group = self._group_in(self._current(syncing.group_id), syncing.group_id)
        cdef bint waits = False
        if group is None:
            return False
        delayed.park(self._purgatory, syncing.group_id)
        try:
            waits = group._wait_to_sync(
                syncing.member_id, syncing.instance_id, syncing.generation_id, syncing.protocol_type,
                syncing.protocol_name, delayed,
            )
        finally:
            if not waits:
                self._purgatory.pop(delayed, None)
        return waits

    cpdef bint keep(self, str group_id, str member_id, str instance_id, int32_t generation_id) except -1:
        cdef ClassicGroupBase group = self._group_in(self._current(group_id), group_id)
        cdef ClassicMember member = None
        if group is not None:
            member = group.kept_member(member_id, instance_id, generation_id)
        if member is None:
            return False
        self._timers.schedule((group_id, self._session, member_id), max(member.session_timeout_ms, 0))
        return True

    cpdef bint assigned(self, Syncing syncing) except -1:
        cdef GroupsBase groups = self._current(syncing.group_id)
        cdef ClassicGroupBase group = self._group_in(groups, syncing.group_id)
        cdef ClassicMember member
        if group is None:
            return False
        member = group.stable_member(
            syncing.member_id, syncing.instance_id, syncing.generation_id, syncing.protocol_type, syncing.protocol_name
        )
        if member is None:
            return False
        syncing.group_protocol_type = group.protocol_type
        syncing.group_protocol = group.protocol
        syncing.assignment = member.assignment
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            self._timers.cancel((syncing.group_id, self._sync, ""))
        return True

"""A group of the classic protocol, as far as each of its members changes it. Contracts are in classic_members.pyi."""

cimport cython
from cpython.bytes cimport PyBytes_FromObject, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.late_answers cimport Generation, new_generation, new_join_answer, new_sync_answer
from kafka_shim.cext.wire cimport Out, out_free, out_init, write_bytes, write_i16, write_i32, write_i64, write_string

from kafka_shim.cext.wire import EncodeError

cdef enum:
    CANCEL = -1                 # of group/decision.py: the delay of a timer that is stopped
    # The version of the group's record: the last one that is not flexible.
    RECORD_VERSION = 3
    INT32_MAX = 0x7FFFFFFF

cdef object EMPTY = None
cdef object PREPARING = None
cdef object COMPLETING = None
cdef object STABLE = None
cdef object DEAD = None


def know_states(empty not None, preparing not None, completing not None, stable not None, dead not None):
    global EMPTY, PREPARING, COMPLETING, STABLE, DEAD
    EMPTY, PREPARING, COMPLETING, STABLE, DEAD = empty, preparing, completing, stable, dead


cpdef int64_t size_of(list protocols) except -1:
    cdef int64_t size_bytes = 0
    for protocol in protocols:
        size_bytes += len(<str?>(<tuple?>protocol)[0]) + len((<tuple>protocol)[1])
    return size_bytes


@cython.final
@cython.freelist(64)
cdef class ClassicMember:
    def __init__(
        self,
        str member_id not None,
        str instance_id,
        client not None,
        int64_t rebalance_timeout_ms,
        int64_t session_timeout_ms,
        list protocols not None,
        bytes assignment not None=b"",
    ):
        _fill(
            self, member_id, instance_id, client.client_id, client.host, rebalance_timeout_ms, session_timeout_ms,
            protocols, assignment,
        )

    cpdef object metadata(self, protocol):
        for each in self.protocols:
            if (<tuple?>each)[0] == protocol:
                return (<tuple>each)[1]
        return b""

    @property
    def is_waiting(self):
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)


cdef int _fill(
    ClassicMember member, str member_id, str instance_id, str client_id, str client_host, int64_t rebalance_timeout_ms,
    int64_t session_timeout_ms, list protocols, bytes assignment
) except -1:
    member.member_id = member_id
    member.instance_id = instance_id
    member.client_id = client_id
    member.client_host = client_host
    member.rebalance_timeout_ms = rebalance_timeout_ms
    member.session_timeout_ms = session_timeout_ms
    member.protocols = protocols
    member.assignment = assignment
    return 0


cdef ClassicMember new_member(
    str member_id, str client_id, str client_host, int64_t rebalance_timeout_ms, int64_t session_timeout_ms,
    list protocols
):
    cdef ClassicMember member = ClassicMember.__new__(ClassicMember)
    _fill(
        member, member_id, None, client_id, client_host, rebalance_timeout_ms, session_timeout_ms, protocols, b""
    )
    return member


# A `def` that only calls the `cdef` beside it checks what Python's callers pass (`not None`), which a cpdef cannot. And
# that would ask at each call of C whether ClassicGroup has a method of this name.
cdef class ClassicGroupBase:
    @property
    def has_all_joined(self):
        return not self.pending_joins and len(self.joining) == len(self.members)

    cdef bint is_gathered(self) except -1:
        return self.state is PREPARING and self.previous_state is EMPTY and not self.pending_joins

    def add(self, ClassicMember member not None, protocol_type):
        self._add(member, protocol_type)

    cdef int _add(self, ClassicMember member, protocol_type) except -1:
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        self.pending_joins.pop(member.member_id, None)
        return 0

    def forget_all(
        self, str group_id not None, str kind not None, row, identities not None, refusal, list moves not None
    ):
        cdef list rows = []
        cdef bint has_left = False
        for identity in identities:
            member_id = identity.member_id
            instance_id = identity.group_instance_id
            code = 0
            if self._forget(<str?>member_id, instance_id):
                moves.append((group_id, kind, member_id, CANCEL, False))
            else:
                code = refusal(identity)
            has_left = has_left or code == 0
            rows.append(row(member_id=member_id, group_instance_id=instance_id, error_code=code))
        return rows, has_left

    cdef bint _forget(self, str member_id, instance_id) except -1:
        cdef ClassicMember member
        if member_id not in self.pending_joins:
            member = self.members.get(member_id)
            if (
                member is None
                or member.awaiting_join is not None
                or member.awaiting_sync is not None
                or (instance_id is not None and self.static_members.get(instance_id) != member_id)
            ):
                return False
        self._remove(member_id)
        return True

    def remove(self, str member_id not None):
        self._remove(member_id)

    cdef int _remove(self, str member_id) except -1:
        cdef ClassicMember member = self.members.pop(member_id, None)
        if member is not None:
            self.joining.discard(member_id)
            self._count_protocols(member, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        return 0

    def await_join(self, ClassicMember member not None, token):
        self._await_join(member, token)

    cdef int _await_join(self, ClassicMember member, token) except -1:
        member.awaiting_join = token
        self.joining.add(member.member_id)
        return 0

    def end_joins(
        self, str group_id not None, str kind not None, response, row, list replies not None, list moves not None
    ):
        cdef ClassicMember member
        cdef str leader_id = self.leader_id or ""
        cdef Generation generation = new_generation(
            self.generation_id, self.protocol_type, self.protocol, leader_id
        )
        for each in self.members.values():
            member = <ClassicMember?>each
            if member.awaiting_join is not None:
                answer = new_join_answer(
                    response, row, generation, member.member_id,
                    self._told_to_leader() if member.member_id == leader_id else None,
                )
                replies.append((member.awaiting_join, answer))
                member.awaiting_join = None
            moves.append((group_id, kind, member.member_id, max(member.session_timeout_ms, 0), False))
            member.is_new = False
        self.joining.clear()

    cdef list _told_to_leader(self):
        cdef ClassicMember member
        cdef list told = []
        for each in self.members.values():
            member = <ClassicMember?>each
            told.append((member.member_id, member.instance_id, member.metadata(self.protocol)))
        return told

    def joined(self, response, str member_id not None, list rows not None):
        return self._joined(response, member_id, rows)

    cdef object _joined(self, response, str member_id, list rows):
        return response(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader_id or "",
            member_id=member_id,
            members=rows,
        )

    def rows_of_leader(self, row):
        cdef ClassicMember member
        cdef list rows = []
        for each in self.members.values():
            member = <ClassicMember?>each
            rows.append(
                row(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    metadata=member.metadata(self.protocol),
                )
            )
        return rows

    def rows_of_record(self, row, assignments not None):
        cdef ClassicMember member
        cdef list rows = []
        for each in self.members.values():
            member = <ClassicMember?>each
            rows.append(
                row(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol),
                    assignment=assignments.get(member.member_id, b""),
                )
            )
        return rows

    def record_value(self, int64_t state_ms, assignments not None):
        cdef Out out
        if self.generation_id > INT32_MAX:
            return None
        out_init(&out)
        try:
            _write_record(&out, self, state_ms, assignments)
            return PyBytes_FromStringAndSize(<const char*>out.data, out.size_bytes)
        except EncodeError:
            return None             # the codec meets it again, when the record is appended
        finally:
            out_free(&out)

    def answer_syncs(
        self, str group_id not None, str kind not None, response, dict given not None, str leader_id not None, token,
        list replies not None, list moves not None,
    ):
        cdef ClassicMember member
        cdef list waiting = []
        for each in self.members.values():
            member = <ClassicMember?>each
            waiter = token if member.member_id == leader_id else member.awaiting_sync
            if waiter is None:
                continue
            answer = new_sync_answer(
                response, self.protocol_type, self.protocol, given.get(member.member_id, b"")
            )
            replies.append((waiter, answer))
            moves.append((group_id, kind, member.member_id, max(member.session_timeout_ms, 0), False))
            waiting.append(member)
        return waiting

    def keep_assignments(self, dict given not None, list synced not None):
        cdef ClassicMember member
        for each in self.members.values():
            member = <ClassicMember?>each
            member.assignment = given.get(member.member_id, b"")
        for each in synced:
            member = <ClassicMember?>each
            member.awaiting_sync = None

    @property
    def missing(self):
        cdef ClassicMember member
        cdef list missing = []
        for each in self.members.values():
            member = <ClassicMember?>each
            if member.awaiting_join is None and member.instance_id is None:
                missing.append(member.member_id)
        return missing

    @property
    def rebalance_timeout_ms(self):
        cdef ClassicMember member
        cdef int64_t longest_ms = 0
        cdef bint is_first = True
        for each in self.members.values():
            member = <ClassicMember?>each
            if is_first or member.rebalance_timeout_ms > longest_ms:
                longest_ms = member.rebalance_timeout_ms
                is_first = False
        return longest_ms

    @property
    def subscriptions(self):
        cdef set said = set()
        for each in self.members.values():
            said.add((<ClassicMember?>each).metadata(self.protocol))
        return said

    def count_protocols(self, ClassicMember member not None, int change):
        self._count_protocols(member, change)

    cdef int _count_protocols(self, ClassicMember member, int change) except -1:
        cdef list names
        self.metadata_bytes += change * size_of(member.protocols)
        if len(member.protocols) == 1:
            self._count_protocol((<tuple?>member.protocols[0])[0], change)
            return 0
        names = _names(member.protocols)
        for name in set(names):
            self._count_protocol(name, change)
        return 0

    cdef int _count_protocol(self, name, int change) except -1:
        left = self.protocol_counts.get(name, 0) + change
        if left:
            self.protocol_counts[name] = left
        else:
            self.protocol_counts.pop(name, None)
        return 0

    def accepts(self, str member_id not None, int64_t max_size):
        return self._accepts(member_id, max_size)

    cdef bint _accepts(self, str member_id, int64_t max_size) except -1:
        if self.state is EMPTY or self.state is DEAD:
            return True
        if self.state is PREPARING:
            # Members that already wait stay. The others compete for the remaining places.
            return len(self.joining) < max_size or member_id in self.joining
        return len(self.members) < max_size or member_id in self.members

    def has_room(self, str member_id not None, int64_t metadata_bytes, int64_t most_bytes):
        return self._has_room(member_id, metadata_bytes, most_bytes)

    cdef bint _has_room(self, str member_id, int64_t metadata_bytes, int64_t most_bytes) except -1:
        cdef ClassicMember member = self.members.get(member_id)
        cdef int64_t before = 0 if member is None else size_of(member.protocols)
        return metadata_bytes <= before or self.metadata_bytes - before + metadata_bytes <= most_bytes

    def supports(self, str protocol_type not None, list protocols not None):
        return self._supports(protocol_type, protocols)

    cdef bint _supports(self, str protocol_type, list protocols) except -1:
        if self.state is EMPTY:
            return len(protocol_type) > 0 and len(protocols) > 0
        if self.protocol_type != protocol_type:
            return False
        if not self.members:
            return len(protocols) > 0
        for each in protocols:
            if self.protocol_counts.get((<tuple?>each)[0]) == len(self.members):
                return True
        return False

    def admit(self, ClassicMember member not None, protocol_type, token):
        self._admit(member, protocol_type, token)

    cdef int _admit(self, ClassicMember member, protocol_type, token) except -1:
        member.is_new = True
        if self.state is PREPARING and self.previous_state is EMPTY:
            self.new_member_added = True
        self._add(member, protocol_type)
        return self._await_join(member, token)

    cdef bint expects(self, str member_id) except -1:
        return self.state is PREPARING and member_id in self.pending_joins

    cdef bint may_expect(
        self, str protocol_type, list protocols, int64_t metadata_bytes, int64_t max_size, int64_t most_bytes,
        Py_ssize_t most_expected,
    ) except -1:
        return (
            self.state is not DEAD
            and len(self.pending_joins) < most_expected
            and self._accepts("", max_size)
            and self._has_room("", metadata_bytes, most_bytes)
            and self._supports(protocol_type, protocols)
        )

    def wait_to_join(
        self, ClassicMember member not None, str protocol_type not None, token, int64_t max_size, int64_t most_bytes
    ):
        return self._wait_to_join(member, protocol_type, token, max_size, most_bytes)

    cdef bint _wait_to_join(
        self, ClassicMember member, str protocol_type, token, int64_t max_size, int64_t most_bytes
    ) except -1:
        if member.instance_id is not None or not self.expects(member.member_id):
            return False
        if (
            self.previous_state is not EMPTY
            and len(self.pending_joins) == 1
            and len(self.joining) == len(self.members)
        ):
            return False            # the last one, which ends the phase
        if not (
            self._accepts(member.member_id, max_size)
            and self._has_room(member.member_id, size_of(member.protocols), most_bytes)
            and self._supports(protocol_type, member.protocols)
        ):
            return False
        self._admit(member, protocol_type, token)
        return True

    cdef ClassicMember _in_generation(
        self, str member_id, str instance_id, int64_t generation_id, str protocol_type, str protocol_name
    ):
        """`classic_sync` says which error it is otherwise."""
        cdef ClassicMember member = self.members.get(member_id)
        if (
            member is None
            or (instance_id is not None and self.static_members.get(instance_id) != member_id)
            or generation_id != self.generation_id
            or _differs(protocol_type, self.protocol_type)
            or _differs(protocol_name, self.protocol)
        ):
            return None
        return member

    def wait_to_sync(
        self, str member_id, str instance_id, int64_t generation_id, str protocol_type, str protocol_name, token
    ):
        return self._wait_to_sync(member_id, instance_id, generation_id, protocol_type, protocol_name, token)

    cdef bint _wait_to_sync(
        self, str member_id, str instance_id, int64_t generation_id, str protocol_type, str protocol_name, token
    ) except -1:
        cdef ClassicMember member
        # As long as the leader's is awaited the timer of this phase goes on.
        if self.state is not COMPLETING or self.leader_id == member_id or self.leader_id not in self.pending_syncs:
            return False
        member = self._in_generation(member_id, instance_id, generation_id, protocol_type, protocol_name)
        if member is None or member.awaiting_sync is not None:
            return False
        member.awaiting_sync = token
        self.pending_syncs.discard(member_id)
        return True

    cdef ClassicMember kept_member(self, str member_id, str instance_id, int64_t generation_id):
        if self.state is DEAD or self.state is PREPARING:
            return None
        return self._in_generation(member_id, instance_id, generation_id, None, None)

    cdef ClassicMember stable_member(
        self, str member_id, str instance_id, int64_t generation_id, str protocol_type, str protocol_name
    ):
        if self.state is not STABLE:
            return None
        return self._in_generation(member_id, instance_id, generation_id, protocol_type, protocol_name)


cdef int _write_record(Out* out, ClassicGroupBase group, int64_t state_ms, assignments) except -1:
    cdef ClassicMember member
    write_i16(out, RECORD_VERSION)
    write_string(out, False, group.protocol_type or "")
    write_i32(out, <int32_t>group.generation_id)
    write_string(out, False, group.protocol)
    write_string(out, False, group.leader_id)
    write_i64(out, state_ms)
    write_i32(out, <int32_t>len(group.members))
    for each in group.members.values():
        member = <ClassicMember?>each
        write_string(out, False, member.member_id)
        write_string(out, False, member.instance_id)
        write_string(out, False, member.client_id)
        write_string(out, False, member.client_host)
        write_i32(out, <int32_t>member.rebalance_timeout_ms)
        write_i32(out, <int32_t>member.session_timeout_ms)
        write_bytes(out, False, member.metadata(group.protocol))
        write_bytes(out, False, assignments.get(member.member_id, b""))
    return 0


def assignments_of(rows not None):
    cdef dict given = {}
    for each in rows:
        given[each.member_id] = PyBytes_FromObject(each.assignment)
    return given


cdef list _names(list protocols):
    return [(<tuple?>each)[0] for each in protocols]


cdef bint _differs(str asked, object known) except -1:
    return asked is not None and known is not None and asked != known

"""The SyncGroup of a member that gives out no assignments, from frame to frame. Contracts are in plain_syncs.pyi."""

from libc.stdint cimport int32_t, uint8_t

from kafka_shim.cext.classic_requests cimport ClassicRequestsBase, Syncing
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.late_answers cimport write_assignment
from kafka_shim.cext.plain_api cimport (
    LONG,
    PlainMember,
    Reader,
    end_answer,
    groups_of,
    has_no_tags,
    read_known,
    read_text,
    take_i32,
    take_length,
    take_text,
    text_of,
)
from kafka_shim.cext.wire cimport Out, out_free, out_init

cdef enum:
    # Versions of SyncGroup with a new field, or another form.
    STATIC_MEMBERS = 3
    FLEXIBLE = 4
    PROTOCOL = 5


cdef Syncing _read(Reader* c, int version, str last_id):
    cdef bint is_flexible = version >= FLEXIBLE
    cdef const uint8_t* instance_id = NULL
    cdef int32_t instance_id_bytes = -1, count = 0
    cdef Syncing syncing = Syncing.__new__(Syncing)
    syncing.group_id = read_known(c, is_flexible, last_id)
    if not syncing.group_id or not take_i32(c, &syncing.generation_id):
        return None
    syncing.member_id = read_text(c, is_flexible)
    if syncing.member_id is None or (
        version >= STATIC_MEMBERS and not take_text(c, is_flexible, &instance_id, &instance_id_bytes)
    ):
        return None
    syncing.instance_id = text_of(instance_id, instance_id_bytes)
    if version >= PROTOCOL:
        syncing.protocol_type = read_text(c, is_flexible)
        if syncing.protocol_type is None:
            return None
        syncing.protocol_name = read_text(c, is_flexible)
        if syncing.protocol_name is None:
            return None
    if not take_length(c, is_flexible, LONG, &count) or count != 0 or not has_no_tags(c, is_flexible):
        return None
    return syncing


cdef class PlainSync(PlainMember):
    cdef object _delayed
    cdef object _failure

    def __init__(self, delayed not None, failure not None):
        self._delayed = delayed
        self._failure = failure
        self.answered = 1

    cdef object _answer(self, object broker, object session, RequestHeader* header, object client_id, Reader* c):
        cdef ClassicRequestsBase requests = <ClassicRequestsBase?>groups_of(broker).classic
        cdef Syncing syncing = _read(c, header.api_version, requests.last_id)
        cdef object delayed
        if syncing is None:
            return None
        if requests.assigned(syncing):
            return _assigned(header, syncing)
        delayed = self._delayed(self._failure)
        return delayed if requests.wait_to_sync(syncing, delayed) else None


cdef bytes _assigned(RequestHeader* header, Syncing syncing):
    cdef Out out
    out_init(&out)
    try:
        write_assignment(
            &out, header, syncing.group_protocol_type, syncing.group_protocol, syncing.assignment
        )
        return end_answer(&out)
    finally:
        out_free(&out)

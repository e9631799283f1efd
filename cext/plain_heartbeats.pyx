"""Heartbeats by which a member only stays, from frame to frame. Contracts are in plain_heartbeats.pyi."""

cimport cython
from libc.stdint cimport int32_t, uint8_t

from kafka_shim.cext.classic_requests cimport ClassicRequestsBase
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport (
    PlainMember,
    Reader,
    begin_answer,
    end_answer,
    groups_of,
    has_no_tags,
    known_text,
    take_byte,
    take_i32,
    take_text,
    text_of,
)
from kafka_shim.cext.wire cimport Out, out_free, out_init, write_i8, write_i16, write_i32, write_raw, write_uvarint

cdef enum:
    NOTHING = 0                 # as the length of a compact string or array, one more than it is
    KEPT = -1                   # rebalance timeout: as before
    # Versions of Heartbeat with a new field, or another form.
    THROTTLE_TIME = 1
    STATIC_MEMBERS = 3
    FLEXIBLE = 4
    # Of ConsumerGroupHeartbeat.
    REGULAR_EXPRESSIONS = 1

# Of a heartbeat of the consumer protocol.
cdef struct Member:
    const uint8_t* group_id
    int32_t group_id_bytes
    const uint8_t* member_id
    int32_t member_id_bytes
    int32_t epoch               # or generation
    const uint8_t* instance_id
    int32_t instance_id_bytes


@cython.final
@cython.freelist(4)
cdef class Beat:
    cdef readonly str group_id
    cdef readonly int32_t generation_id
    cdef readonly str member_id
    cdef readonly str group_instance_id


cdef bint _read_classic(Reader* c, Member* member, int version) noexcept nogil:
    cdef bint is_flexible = version >= FLEXIBLE
    member.instance_id = NULL
    member.instance_id_bytes = -1
    return (
        take_text(c, is_flexible, &member.group_id, &member.group_id_bytes)
        and member.group_id_bytes > 0
        and take_i32(c, &member.epoch)
        and take_text(c, is_flexible, &member.member_id, &member.member_id_bytes)
        and member.member_id_bytes >= 0
        and (
            version < STATIC_MEMBERS or take_text(c, is_flexible, &member.instance_id, &member.instance_id_bytes)
        )
        and has_no_tags(c, is_flexible)
    )


cdef bint _read_consumer(Reader* c, Member* member, int version) noexcept nogil:
    """One that says nothing but who it is of."""
    cdef int32_t rebalance_timeout_ms = 0
    return (
        take_text(c, True, &member.group_id, &member.group_id_bytes)
        and member.group_id_bytes > 0
        and take_text(c, True, &member.member_id, &member.member_id_bytes)
        and member.member_id_bytes > 0
        and take_i32(c, &member.epoch)
        and member.epoch > 0
        and take_byte(c, NOTHING)      # instance id
        and take_byte(c, NOTHING)      # rack id
        and take_i32(c, &rebalance_timeout_ms)
        and rebalance_timeout_ms == KEPT
        and take_byte(c, NOTHING)      # topic names
        and (version < REGULAR_EXPRESSIONS or take_byte(c, NOTHING))
        and take_byte(c, NOTHING)      # assignor
        and take_byte(c, NOTHING)      # partitions
        and has_no_tags(c, True)
    )


cdef class _PlainHeartbeat(PlainMember):
    """What both kinds do alike. `_stays` is the rule, in Python."""

    cdef object _stays

    def __init__(self, stays not None):
        self._stays = stays
        self.answered = 1


cdef class PlainHeartbeat(_PlainHeartbeat):
    cdef object _answer(self, object broker, object session, RequestHeader* header, object client_id, Reader* c):
        cdef Member member
        cdef Beat beat
        cdef ClassicRequestsBase requests
        if not _read_classic(c, &member, header.api_version):
            return None
        requests = <ClassicRequestsBase?>groups_of(broker).classic
        beat = Beat.__new__(Beat)
        beat.group_id = known_text(requests.last_id, member.group_id, member.group_id_bytes)
        beat.generation_id = member.epoch
        beat.member_id = text_of(member.member_id, member.member_id_bytes)
        beat.group_instance_id = text_of(member.instance_id, member.instance_id_bytes)
        return _classic_answer(header) if self._keeps(broker, requests, beat) else None

    cdef bint _keeps(self, object broker, ClassicRequestsBase requests, Beat beat) except -1:
        """Of a classic group it is done here, of others by their rules."""
        if requests.keep(beat.group_id, beat.member_id, beat.group_instance_id, beat.generation_id):
            return True
        return bool(self._stays(broker, beat))


cdef bytes _classic_answer(RequestHeader* header):
    cdef Out out
    out_init(&out)
    try:
        begin_answer(&out, header, header.api_version >= FLEXIBLE)
        if header.api_version >= THROTTLE_TIME:
            write_i32(&out, 0)
        write_i16(&out, 0)      # no error
        if header.api_version >= FLEXIBLE:
            write_i8(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)


cdef class PlainConsumerHeartbeat(_PlainHeartbeat):
    cdef object _answer(self, object broker, object session, RequestHeader* header, object client_id, Reader* c):
        cdef Member member
        cdef int32_t interval_ms
        if not _read_consumer(c, &member, header.api_version):
            return None
        interval_ms = self._stays(
            broker, session, client_id, text_of(member.group_id, member.group_id_bytes),
            text_of(member.member_id, member.member_id_bytes), member.epoch,
        )
        return None if interval_ms < 0 else _consumer_answer(header, &member, interval_ms)


cdef bytes _consumer_answer(RequestHeader* header, Member* member, int32_t interval_ms):
    cdef Out out
    out_init(&out)
    try:
        begin_answer(&out, header, True)
        write_i32(&out, 0)      # throttle time
        write_i16(&out, 0)      # no error
        write_uvarint(&out, NOTHING)
        write_uvarint(&out, <unsigned int>member.member_id_bytes + 1)
        write_raw(&out, member.member_id, member.member_id_bytes)
        write_i32(&out, member.epoch)
        write_i32(&out, interval_ms)
        write_i8(&out, -1)      # the assignment has not changed
        write_i8(&out, 0)
        return end_answer(&out)
    finally:
        out_free(&out)

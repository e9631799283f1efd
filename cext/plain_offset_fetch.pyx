"""An OffsetFetch of which nothing is refused, from frame to frame. Contracts are in plain_offset_fetch.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint8_t

from kafka_shim.cext.classic_members cimport ClassicGroupBase
from kafka_shim.cext.classic_requests cimport ClassicRequestsBase, GroupsBase
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.offset_records cimport Committed
from kafka_shim.cext.plain_api cimport (
    LONG,
    PlainLookup,
    Reader,
    begin_answer,
    end_answer,
    groups_of,
    has_no_tags,
    read_text,
    take,
    take_i32,
    take_length,
    take_text,
    text_of,
)
from kafka_shim.cext.wire cimport (
    Out,
    write_i8,
    write_i16,
    write_i32,
    write_i64,
    write_long_length,
    write_raw,
    write_string,
)

cdef enum:
    MOST = 1000                 # offsets in an answer: `offset_rules.PARTITIONS_AT_ONCE`
    UUID_BYTES = 16
    NONE = -1                   # no offset, no epoch, no list
    # Versions with a new field, or another form.
    ALL_TOPICS = 2
    THROTTLE_TIME = 3
    LEADER_EPOCHS = 5
    FLEXIBLE = 6
    REQUIRE_STABLE = 7
    GROUPS = 8
    MEMBERS = 9
    TOPIC_IDS = 10

MOST_OFFSETS = MOST

cdef bytes ZERO_UUID = bytes(UUID_BYTES)


# What is asked of all groups of a request, and how many offsets the answer has so far.
cdef struct Asking:
    int version
    bint is_flexible
    bint requires_stable
    int count


# The member that asks, if one is named.
cdef struct Asker:
    const uint8_t* member_id
    int32_t member_id_bytes
    int32_t member_epoch


cdef class PlainOffsetFetch(PlainLookup):
    cdef object _dead
    cdef type _consumer_group

    def __init__(self, dead not None, type consumer_group not None):
        self._dead = dead
        self._consumer_group = consumer_group

    cdef object _answer(self, object broker, RequestHeader* header, Reader* c, Out* out):
        """The answer is written as the request is read."""
        cdef object groups = groups_of(broker)
        cdef object image = broker.metadata.image
        cdef int version = header.api_version
        cdef Asking asking
        cdef int32_t group_count = 1
        asking.version, asking.is_flexible, asking.count = version, version >= FLEXIBLE, 0
        # The last field, behind which is no tag.
        asking.requires_stable = version >= REQUIRE_STABLE and c.end - c.at >= 2 and (c.end - 2)[0] != 0
        begin_answer(out, header, asking.is_flexible)
        if version >= THROTTLE_TIME:
            write_i32(out, 0)
        if version >= GROUPS:
            if not take_length(c, True, LONG, &group_count) or group_count < 0:
                return None
            write_long_length(out, True, group_count)
        if groups.offsets.deleted.are_left:
            return None
        for _ in range(group_count):
            if not self._write_group(<ClassicRequestsBase?>groups.classic, image, c, out, &asking):
                return None
        if version >= REQUIRE_STABLE and not (take(c, 1) and ((c.at - 1)[0] != 0) == asking.requires_stable):
            return None
        if not has_no_tags(c, asking.is_flexible):
            return None
        if ALL_TOPICS <= version < GROUPS:
            write_i16(out, 0)   # no error
        if asking.is_flexible:
            write_i8(out, 0)
        # One error code of the answer, of all versions, and one of each group.
        self.answered = asking.count + 1 + (group_count if version >= GROUPS else 0)
        return end_answer(out)

    cdef bint _write_group(
        self, ClassicRequestsBase requests, object image, Reader* c, Out* out, Asking* asking
    ) except -1:
        """Returns False if there is something to decide."""
        cdef Asker asker
        cdef int32_t topics = 0
        cdef str group_id = read_text(c, asking.is_flexible)
        cdef dict offsets
        asker.member_id, asker.member_id_bytes, asker.member_epoch = NULL, NONE, NONE
        if not group_id:
            return False
        if asking.version >= MEMBERS and not (
            take_text(c, True, &asker.member_id, &asker.member_id_bytes) and take_i32(c, &asker.member_epoch)
        ):
            return False
        if not take_length(c, asking.is_flexible, LONG, &topics) or topics < NONE:
            return False
        offsets = self._offsets_of(requests, group_id, &asker, asking.requires_stable)
        if offsets is None:
            return False
        if asking.version >= GROUPS:
            write_string(out, True, group_id)
        if topics == NONE:
            if asking.version < ALL_TOPICS or not _write_all(out, offsets, image, asking):
                return False
        else:
            write_long_length(out, asking.is_flexible, topics)
            for _ in range(topics):
                if not _write_named(c, out, offsets, image, asking):
                    return False
        if asking.version >= GROUPS:
            if not has_no_tags(c, True):
                return False
            write_i16(out, 0)   # no error
            write_i8(out, 0)
        return True

    cdef dict _offsets_of(self, ClassicRequestsBase requests, str group_id, Asker* asker, bint requires_stable):
        """Topic -> partition -> offset; or None if the handler must decide."""
        cdef GroupsBase groups = requests._current(group_id)
        if groups is None:
            return None
        group = groups.by_id.get(group_id)
        if group is None:
            return {}
        if isinstance(group, ClassicGroupBase):
            if (<ClassicGroupBase>group).state is self._dead:
                return None
        elif type(group) is not self._consumer_group or not _may_read(<dict?>group.members, asker):
            return None
        offsets = groups.offsets
        if requires_stable and offsets.has_any_pending(group_id):
            return None
        return <dict?>offsets.of_group(group_id)


cdef bint _may_read(dict members, Asker* asker) except -1:
    """Whether a member of a consumer group asks in its epoch, or nobody in particular."""
    if asker.member_id_bytes < 0:
        return asker.member_epoch < 0
    member = members.get(text_of(asker.member_id, asker.member_id_bytes))
    return member is not None and member.member_epoch == asker.member_epoch


cdef bint _write_all(Out* out, dict offsets, object image, Asking* asking) except -1:
    """All topics of which the group has offsets."""
    cdef bint by_id = asking.version >= TOPIC_IDS
    cdef dict found
    if by_id:
        offsets = {name: found for name, found in offsets.items() if name in image.topics}
    write_long_length(out, asking.is_flexible, len(offsets))
    for name, of_topic in offsets.items():
        found = <dict?>of_topic
        asking.count += len(found)
        if asking.count > MOST:
            return False
        if by_id:
            topic_id = image.topics[name].topic_id
            write_raw(out, PyBytes_AS_STRING(<bytes?>topic_id), UUID_BYTES)
        else:
            write_string(out, asking.is_flexible, <str?>name)
        write_long_length(out, asking.is_flexible, len(found))
        for partition, committed in found.items():
            _write_offset(out, partition, <Committed?>committed, asking)
        if asking.is_flexible:
            write_i8(out, 0)
    return True


cdef bint _write_named(Reader* c, Out* out, dict offsets, object image, Asking* asking) except -1:
    """One topic that the request names. Returns False if there is something to decide."""
    cdef bytes topic_id = ZERO_UUID
    cdef str name
    cdef dict found
    cdef int32_t partitions = 0, partition = 0
    cdef Committed committed
    if asking.version >= TOPIC_IDS:
        if not take(c, UUID_BYTES):
            return False
        topic_id = PyBytes_FromStringAndSize(<const char*>c.at - UUID_BYTES, UUID_BYTES)
        topic = image.topics_by_id.get(topic_id)
        if topic is None or topic_id == ZERO_UUID:
            return False
        name = topic.name
        write_raw(out, PyBytes_AS_STRING(topic_id), UUID_BYTES)
    else:
        name = read_text(c, asking.is_flexible)
        if name is None:
            return False
        write_string(out, asking.is_flexible, name)
    if not take_length(c, asking.is_flexible, LONG, &partitions) or partitions < 0:
        return False
    asking.count += partitions
    if not 0 <= asking.count <= MOST:
        return False
    write_long_length(out, asking.is_flexible, partitions)
    found = offsets.get(name)
    for _ in range(partitions):
        if not take_i32(c, &partition):
            return False
        committed = None if found is None else found.get(partition)
        if committed is not None and not _is_of(committed, topic_id):
            committed = None
        _write_offset(out, partition, committed, asking)
    if asking.is_flexible:
        write_i8(out, 0)
    return has_no_tags(c, asking.is_flexible)


cdef bint _is_of(Committed committed, bytes topic_id) except -1:
    """Whether the offset is of the topic that is meant. Without an id it may be of any of its name."""
    return topic_id == ZERO_UUID or committed.topic_id == topic_id or committed.topic_id == ZERO_UUID


cdef int _write_offset(Out* out, int32_t partition, Committed committed, Asking* asking) except -1:
    """None: nothing was committed."""
    write_i32(out, partition)
    write_i64(out, NONE if committed is None else committed.offset)
    if asking.version >= LEADER_EPOCHS:
        write_i32(out, NONE if committed is None else committed.leader_epoch)
    write_string(out, asking.is_flexible, "" if committed is None else committed.metadata)
    write_i16(out, 0)           # no error
    return write_i8(out, 0) if asking.is_flexible else 0

"""Committed offsets and their records. Contracts are in offset_records.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp

from kafka_shim.cext.plans cimport get_field, set_field, slot_of
from kafka_shim.cext.wire cimport (
    Out, out_free, out_init, write_i8, write_i16, write_i32, write_i64, write_raw, write_string,
)

cdef enum:
    KEY_TYPE = 1                # OFFSET_COMMIT, as the version of Kafka's OffsetCommitKey
    VERSION = 4                 # flexible, with the topic's id
    EXPIRING_VERSION = 1        # the only one with an expiry time
    NO_EXPIRY = -1
    UUID_BYTES = 16
    TOPIC_ID_TAG = 0

cdef const char* _ZERO_UUID = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"


cdef class Committed:
    # Not __init__, which a caller may leave out: `write_offset_value` reads UUID_BYTES of the topic id unchecked.
    def __cinit__(
        self, int64_t offset, int32_t leader_epoch, str metadata not None, int64_t commit_ms,
        int64_t expire_ms=NO_EXPIRY, bytes topic_id not None=bytes(UUID_BYTES), int64_t record_offset=-1
    ):
        if PyBytes_GET_SIZE(topic_id) != UUID_BYTES:
            raise ValueError(f"a topic id of {len(topic_id)} bytes")
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_ms = commit_ms
        self.expire_ms = expire_ms
        self.topic_id = topic_id
        self.record_offset = record_offset


def encode_offset_key(str group_id not None, str topic not None, int32_t partition):
    return _key(group_id, topic, partition)


def encode_offset(Committed committed not None):
    return _value(committed)


def encode_offsets(str group_id not None, changes, int64_t now_ms):
    cdef list entries = []
    cdef object time_ms = now_ms
    cdef Committed committed
    for topic, partition, offset in changes:
        committed = <Committed?>offset if offset is not None else None
        entries.append((
            _key(group_id, <str?>topic, partition), None if committed is None else _value(committed), time_ms, ()
        ))
    return entries


cdef int write_offset_key(Out* out, str group_id, str topic, int32_t partition) except -1:
    write_i16(out, KEY_TYPE)
    write_string(out, False, group_id)
    write_string(out, False, topic)
    write_i32(out, partition)
    return 0


cdef int write_offset_value(Out* out, Committed committed) except -1:
    cdef bint expires = committed.expire_ms != NO_EXPIRY
    cdef const char* topic_id = PyBytes_AS_STRING(committed.topic_id)
    write_i16(out, EXPIRING_VERSION if expires else VERSION)
    write_i64(out, committed.offset)
    if not expires:
        write_i32(out, committed.leader_epoch)
    write_string(out, not expires, committed.metadata)
    write_i64(out, committed.commit_ms)
    if expires:
        write_i64(out, committed.expire_ms)
    elif memcmp(topic_id, _ZERO_UUID, UUID_BYTES) == 0:
        write_i8(out, 0)                    # no tagged field
    else:
        write_i8(out, 1)
        write_i8(out, TOPIC_ID_TAG)
        write_i8(out, UUID_BYTES)
        write_raw(out, topic_id, UUID_BYTES)
    return 0


cdef bytes _key(str group_id, str topic, int32_t partition):
    cdef Out out
    out_init(&out)
    try:
        write_offset_key(&out, group_id, topic, partition)
        return PyBytes_FromStringAndSize(<char*>out.data, out.size_bytes)
    finally:
        out_free(&out)


cdef bytes _value(Committed committed):
    cdef Out out
    out_init(&out)
    try:
        write_offset_value(&out, committed)
        return PyBytes_FromStringAndSize(<char*>out.data, out.size_bytes)
    finally:
        out_free(&out)


cdef class PlainCommits:
    cdef object _topic_class
    cdef object _partition_class
    cdef object _answer_class
    cdef object _row_class
    cdef Py_ssize_t _name
    cdef Py_ssize_t _topic_id
    cdef Py_ssize_t _partitions
    cdef Py_ssize_t _index
    cdef Py_ssize_t _offset
    cdef Py_ssize_t _epoch
    cdef Py_ssize_t _metadata

    def __init__(self, topic_class, partition_class, answer_class, row_class):
        self._topic_class = topic_class
        self._partition_class = partition_class
        self._answer_class = answer_class
        self._row_class = row_class
        self._name = slot_of(topic_class, "name")
        self._topic_id = slot_of(topic_class, "topic_id")
        self._partitions = slot_of(topic_class, "partitions")
        self._index = slot_of(partition_class, "partition_index")
        self._offset = slot_of(partition_class, "committed_offset")
        self._epoch = slot_of(partition_class, "committed_leader_epoch")
        self._metadata = slot_of(partition_class, "committed_metadata")

    cdef list _rows(self, object topic):
        """The partitions of a topic; None if they are not what a decoded request has."""
        if type(topic) is not self._topic_class:
            return None
        rows = get_field(topic, self._partitions)
        if type(rows) is not list:
            return None
        for row in <list>rows:
            if type(row) is not self._partition_class:
                return None
        return <list>rows

    def are_known(self, list topics not None, dict known not None, bint by_id):
        cdef list rows
        cdef Py_ssize_t count
        for topic in topics:
            rows = self._rows(topic)
            if not rows:
                return False
            found = known.get(get_field(topic, self._topic_id if by_id else self._name))
            if found is None:
                return False
            count = len(found.partitions)
            for row in rows:
                if not 0 <= <int64_t>get_field(row, self._index) < count:
                    return False
            set_field(topic, self._name, found.name)
            set_field(topic, self._topic_id, found.topic_id)
        return len(topics) > 0

    def take(self, list topics not None, int64_t metadata_limit, now_ms, expire_ms, Py_ssize_t most):
        cdef list rows
        cdef list changes = []
        cdef list answers = []
        cdef list answered
        for topic in topics:
            rows = self._rows(topic)
            if rows is None or len(changes) + len(rows) > most:
                return None
            name, topic_id = get_field(topic, self._name), get_field(topic, self._topic_id)
            if type(topic_id) is not bytes:
                return None
            answered = []
            for row in rows:
                metadata = get_field(row, self._metadata)
                if metadata is None:
                    metadata = ""
                elif len(<str?>metadata) * 2 > metadata_limit:
                    return None
                index = get_field(row, self._index)
                changes.append((name, index, Committed(
                    get_field(row, self._offset), get_field(row, self._epoch), metadata, now_ms, expire_ms, topic_id
                )))
                answered.append(self._row_class(partition_index=index))
            answers.append(self._answer_class(name=name, topic_id=topic_id, partitions=answered))
        return changes, answers


def put_offsets(dict stored not None, list changes not None, int64_t base_offset):
    cdef Committed committed
    cdef dict of_topic
    for topic, partition, offset in changes:
        committed = <Committed?>offset
        committed.record_offset = base_offset
        base_offset += 1
        of_topic = stored.get(topic)
        if of_topic is None:
            of_topic = stored[topic] = {}
        of_topic[partition] = committed


def fetched(dict by_topic not None, wanted, topic_class, row_class):
    cdef list topics = []
    cdef list rows
    cdef dict found
    cdef Committed committed
    cdef object zero = PyBytes_FromStringAndSize(_ZERO_UUID, UUID_BYTES)
    cdef bint is_any
    for name, topic_id, partitions in wanted:
        found = by_topic.get(name)
        is_any = topic_id == zero
        rows = []
        for partition in partitions:
            committed = None if found is None else found.get(partition)
            if committed is None or not (
                is_any or committed.topic_id == topic_id or committed.topic_id == <bytes>zero
            ):
                rows.append(row_class(partition_index=partition, committed_offset=-1))
            else:
                rows.append(row_class(
                    partition_index=partition, committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch, metadata=committed.metadata,
                ))
        topics.append(topic_class(name=name, topic_id=topic_id, partitions=rows))
    return topics

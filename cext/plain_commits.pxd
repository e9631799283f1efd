from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.log_base cimport LogBase
from kafka_shim.cext.plain_api cimport PlainAppend, Reader

cdef enum:
    MOST = 64                   # partitions, and so topics
    NO_RETENTION = -1

# One partition of the request.
cdef struct Entry:
    int32_t index
    int64_t offset
    int32_t leader_epoch
    const uint8_t* metadata
    int32_t metadata_bytes

cdef struct Topic:
    const uint8_t* name         # or its id
    int32_t size_bytes
    int count                   # of its partitions

cdef struct OffsetsRequest:
    const uint8_t* group_id
    int32_t group_id_bytes
    int32_t epoch               # or generation
    const uint8_t* member_id
    int32_t member_id_bytes
    const uint8_t* instance_id
    int32_t instance_id_bytes
    int64_t retention_ms
    int topic_count
    int count
    Topic[MOST] topics
    Entry[MOST] entries

# The topics of a request, each with at least one partition, and its end, as OffsetCommit of a version has them.
cdef bint read_topics(Reader* c, OffsetsRequest* request, int version) noexcept nogil
# The offsets as (topic, partition, `Committed`), or None if one of them may have to be refused. `known` are topics by
# name, or by id.
cdef list changes_of(dict known, OffsetsRequest* request, int version, int64_t metadata_limit, int64_t now_ms)
# The batch that `records.build` makes of what `encode_offsets` returns.
cdef bytearray batch_of(
    str group_id, list changes, int64_t now_ms, int64_t producer_id, int16_t producer_epoch, bint is_transactional
)
# The frame of the answer that refuses nothing.
cdef bytes answer_to(
    OffsetsRequest* request, RequestHeader* header, bint is_flexible, bint has_throttle_time, bint by_id
)


# What stores offsets of a group.
cdef class OffsetsApi(PlainAppend):
    cdef object _segment
    cdef Py_ssize_t _cached_batches
    cdef object _prepare
    cdef object _fail

    # Append the batch of these changes and apply them, to the transaction of `producer_id` or, if it is None, at once.
    # Returns the `Appended`; or None, and nothing has happened; or the error that has happened.
    cdef object _store(
        self, object broker, object groups, LogBase log, bytearray batch, str group_id, list changes, int64_t now_ms,
        object producer_id
    )

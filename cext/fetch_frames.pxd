"""A Fetch request as fields in C, and the frame of its answer, for `plain_fetch`."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.plain_api cimport Reader
from kafka_shim.cext.wire cimport Out

cdef enum:
    MOST = 64                   # partitions that are named, and that are read
    UUID_BYTES = 16
    NONE = -1                   # no replica, no epoch, no preferred replica
    NO_SESSION = 0
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
    TOPIC_IDS = 13              # the first version that has them

# One partition that the request names.
cdef struct Asked:
    const uint8_t* topic        # or its id
    int32_t topic_bytes
    int32_t partition
    int32_t current_leader_epoch
    int32_t last_fetched_epoch
    int32_t max_bytes
    int64_t fetch_offset

cdef struct Request:
    int32_t max_wait_ms
    int32_t min_bytes
    int32_t max_bytes
    int isolation_level
    int32_t session_id
    int32_t session_epoch
    int count
    Asked[MOST] asked

# One partition that is read.
cdef struct Read:
    const uint8_t* topic
    int32_t topic_bytes
    int32_t partition
    int64_t fetch_offset
    int64_t end_offset
    int64_t stable_offset
    int64_t log_start_offset
    int64_t segment_base
    Py_ssize_t records_at       # in the bytes that were read
    Py_ssize_t size_bytes
    bint is_shown

cdef struct Reads:
    int count
    int64_t size_bytes
    int64_t limit_bytes
    Read[MOST] reads

# A whole request of a consumer that forgets no partition and names none twice; False if it is not one.
cdef bint read_request(Reader* c, Request* request, int version) noexcept nogil

# The frame of the answer with those that are shown; `records` has the bytes that were read.
cdef bytes write_answer(Request* request, RequestHeader* header, Reads* reads, Out* records)

from libc.stdint cimport int32_t, int64_t

from kafka_shim.cext.wire cimport Out


cdef class Committed:
    cdef readonly int64_t offset
    cdef readonly int32_t leader_epoch
    cdef readonly str metadata
    cdef readonly int64_t commit_ms
    cdef readonly int64_t expire_ms
    cdef readonly bytes topic_id
    cdef public int64_t record_offset


# What `encode_offset_key` and `encode_offset` return.
cdef int write_offset_key(Out* out, str group_id, str topic, int32_t partition) except -1
cdef int write_offset_value(Out* out, Committed committed) except -1

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_shim.cext.batch cimport Verdict

# One record, proved; the pointers are into the (decompressed) records of its batch.
#
#    length varint        of what follows
#    attributes int8      unused
#    timestamp delta varlong, offset delta varint
#    key length varint (below 0: null), key
#    value length varint (below 0: null), value
#    header count varint, then per header: key length varint, key, value length varint (below 0: null), value
ctypedef struct RecordFields:
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_size            # -1: null
    int32_t value_size          # -1: null
    int32_t header_count
    const uint8_t* key
    const uint8_t* value
    const uint8_t* headers      # proved to hold header_count headers
    const uint8_t* end          # where the next record starts


cdef Verdict read_record(const uint8_t* p, const uint8_t* end, RecordFields* fields) noexcept nogil

# What `scan_plain` finds of the batch in [p, p + size_bytes).
cdef bint is_plain(
    const uint8_t* p,
    int64_t size_bytes,
    int64_t limit_bytes,
    bint needs_keys,
    int64_t now_ms,
    int64_t before_limit_ms,
    int64_t after_limit_ms,
) noexcept nogil

# The same of a compressed batch for which `may_unpack`: whether it decompresses to at most `limit_bytes` and is plain
# otherwise.
cdef bint unpacks_plain(
    const uint8_t* p,
    int64_t size_bytes,
    int64_t limit_bytes,
    bint needs_keys,
    int64_t now_ms,
    int64_t before_limit_ms,
    int64_t after_limit_ms,
) except -1

# Whether the compressed batch in [p, p + size_bytes), at least a header, decompresses to at most `limit_bytes` by its
# framing, and to so little that no thread has to do it: `validation.LEAST_DECOMPRESSED_APART_BYTES` of its codec.
cdef bint may_unpack(const uint8_t* p, int64_t size_bytes, int64_t limit_bytes) except -1


cdef class Record:
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly tuple headers


cdef class RecordsSummary:
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t offset_of_max_timestamp
    cdef readonly int64_t min_timestamp
    cdef readonly int64_t uncompressed_bytes
    cdef readonly int32_t record_count
    cdef readonly int32_t null_key_count
    cdef readonly int32_t first_null_key

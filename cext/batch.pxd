from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t

# RecordBatch v2, big-endian:
#
#    0 base offset int64           | outside the CRC: the broker writes these
#    8 length int32                | bytes after this field
#   12 partition leader epoch int32|
#   16 magic int8 = 2              |
#   17 crc uint32                  | CRC-32C of everything from 21 to the end
#   21 attributes int16            bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon
#   23 last offset delta int32     last offset - base offset; compaction keeps it when it drops records
#   27 base timestamp int64        of the first record, or the delete horizon
#   35 max timestamp int64
#   43 producer id int64           -1: none
#   51 producer epoch int16
#   53 base sequence int32
#   57 record count int32
#   61 records                     compressed as a whole when there is a codec
cdef enum:
    AT_BASE_OFFSET = 0
    AT_LENGTH = AT_BASE_OFFSET + 8
    AT_LEADER_EPOCH = AT_LENGTH + 4
    AT_MAGIC = AT_LEADER_EPOCH + 4
    AT_CRC = AT_MAGIC + 1
    AT_ATTRIBUTES = AT_CRC + 4
    AT_LAST_OFFSET_DELTA = AT_ATTRIBUTES + 2
    AT_BASE_TIMESTAMP = AT_LAST_OFFSET_DELTA + 4
    AT_MAX_TIMESTAMP = AT_BASE_TIMESTAMP + 8
    AT_PRODUCER_ID = AT_MAX_TIMESTAMP + 8
    AT_PRODUCER_EPOCH = AT_PRODUCER_ID + 8
    AT_BASE_SEQUENCE = AT_PRODUCER_EPOCH + 2
    AT_RECORD_COUNT = AT_BASE_SEQUENCE + 4
    BATCH_HEADER_SIZE = AT_RECORD_COUNT + 4

    LENGTH_END = AT_LENGTH + 4      # what the length field does not count
    MAX_BATCH_BYTES = 0x7FFFFFFF    # as the length field counts them
    MAGIC_END = AT_MAGIC + 1
    LEAST_OLD_LENGTH = 14           # of a message of magic 0: crc, magic, attributes, two lengths

    CODEC_MASK = 0x07
    LOG_APPEND_TIME_FLAG = 0x08
    TRANSACTIONAL_FLAG = 0x10
    CONTROL_FLAG = 0x20
    DELETE_HORIZON_FLAG = 0x40
    KNOWN_ATTRIBUTES = 0x7F

    # Above these a CRC or a walk runs without the GIL; see docs/adr/0004-gil-release.md.
    RELEASE_GIL_CRC_BYTES = 1 << 20
    RELEASE_GIL_WALK_BYTES = 1 << 20

# Also visible from Python; batch.pyi says what each means.
cpdef enum Verdict:
    OK = 0
    SHORT = 1
    BAD_LENGTH = 2
    TRUNCATED = 3
    BAD_MAGIC = 4
    UNKNOWN_MAGIC = 5
    BAD_CRC = 6
    BAD_OFFSET_RANGE = 7
    BAD_COUNT = 8
    BAD_CODEC = 9
    BAD_COMPRESSED_DATA = 10
    TOO_LARGE = 11
    BAD_RECORD_LENGTH = 12
    BAD_VARINT = 13
    BAD_FIELD_LENGTH = 14
    BAD_HEADERS = 15
    BAD_OFFSET_DELTA = 16
    TRAILING_BYTES = 17
    OUT_OF_ORDER = 18


cdef class Batch:
    cdef readonly int64_t position
    cdef readonly int64_t base_offset
    cdef readonly int64_t size_bytes
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t producer_id
    cdef readonly uint32_t crc
    cdef readonly int32_t leader_epoch
    cdef readonly int32_t last_offset_delta
    cdef readonly int32_t base_sequence
    cdef readonly int32_t record_count
    cdef readonly int16_t attributes
    cdef readonly int16_t producer_epoch
    cdef readonly int magic


# The fields of a header, without length, magic and CRC, which are computed.
cdef struct Header:
    int64_t base_offset
    int32_t leader_epoch
    int16_t attributes
    int32_t last_offset_delta
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int16_t producer_epoch
    int32_t base_sequence
    int32_t record_count


# Bounds and magic of the batch that starts at `p`; `size` is how much may be read there. OK proves the whole batch
# readable.
cdef Verdict check_bounds(const uint8_t* p, int64_t size) noexcept nogil
# What the header says about itself; the bounds are proved.
cdef Verdict check_header(const uint8_t* p) noexcept nogil
cdef bint crc_matches(const uint8_t* p, int64_t size_bytes) noexcept nogil
# A Batch of a header whose bounds are proved.
cdef Batch read_header(const uint8_t* p, int64_t position)
# The header fields of a batch that was read, to write another batch.
cdef Header header_of(Batch batch)
# The only writer of batches: writes header, CRC and the records as they are stored (a buffer). Raises ValueError if
# they are too large for a batch.
cdef bytearray write_batch(const Header* header, object records)

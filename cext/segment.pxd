from libc.stdint cimport int64_t, uint8_t


# One stored batch.
cdef struct Found:
    int64_t position
    int64_t size_bytes
    int64_t base_offset
    int64_t last_offset


cdef class IndexBase:
    cdef public bytearray tail
    cdef public int64_t stored_bytes


cdef class SegmentBase:
    cdef public int64_t base_offset
    cdef public int64_t size_bytes
    cdef public int64_t bytes_since_index
    cdef public object first_timestamp_ms
    cdef public object max_timestamp_ms
    cdef public int64_t max_timestamp_offset
    cdef public int _fd
    # Of the configuration `_limits_of`.
    cdef public object _limits_of
    cdef public int64_t _most_bytes
    cdef public int64_t _interval_bytes
    cdef public int64_t _longest_wait_ms
    cdef public int64_t _most_index_bytes
    cdef public bint _is_index_full
    # None: not loaded.
    cdef public IndexBase _offset_index
    cdef public IndexBase _time_index

    # What `append_plain` asks, and what it does then.
    # Whether a batch of this size may go here without a new segment. `takes` asks the rest too, and sees to what an
    # index entry needs: all that may fail comes before the write.
    cdef bint has_room(self, int64_t size_bytes, object config) except -1
    cdef bint takes(self, int64_t size_bytes, int64_t last_offset, int64_t max_timestamp_ms, object config) except -1
    # The batch of `size_bytes` at `p`, which is `whole`, or begins at its byte `start` if that is not the first.
    cdef int put_at(
        self, object put, object whole, Py_ssize_t start, uint8_t* p, int64_t size_bytes, int64_t last_offset,
        int64_t max_timestamp_ms
    ) except -1
    # Whether the next index entries are only added to what is in memory.
    cdef bint _has_index_tails(self) except -1
    cdef int _index_plain(self, int64_t last_offset, int64_t position) except -1
    # `Segment.find`: whether there is such a batch. The descriptor is open then, until another file is opened.
    cdef bint find_at(self, int64_t offset, Found* found) except -1
    # Copy stored bytes behind `find_at`. Returns how many there were: fewer only at the end of the file.
    cdef Py_ssize_t read_into(self, uint8_t* target, int64_t position, Py_ssize_t size_bytes) except -1

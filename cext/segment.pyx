"""One .log file and its indexes: bytes and positions. Contracts are in segment.pyi."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from posix.types cimport off_t
from posix.unistd cimport pread, write

from kafka_shim.cext.batch cimport (
    AT_ATTRIBUTES,
    AT_BASE_OFFSET,
    AT_CRC,
    AT_LAST_OFFSET_DELTA,
    AT_LENGTH,
    BATCH_HEADER_SIZE,
    LENGTH_END,
    Batch,
    Verdict,
    check_bounds,
    check_header,
    read_header,
)
from kafka_shim.cext.bigendian cimport load_i32, load_i64, load_u32, store_i32, store_i64
from kafka_shim.cext.crc32c cimport crc32c_update

from kafka_shim.cext.batch import Verdict as _Verdict

cdef extern from "<sys/mman.h>" nogil:
    int PROT_READ
    int MAP_SHARED
    void* MAP_FAILED
    void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset)
    int munmap(void* address, size_t length)

cdef extern from "<sys/uio.h>" nogil:
    cdef struct iovec:
        void* iov_base
        size_t iov_len
    ssize_t writev(int fd, const iovec* parts, int count)

cdef enum:
    # A smaller transfer of cached bytes is shorter than the wait for the GIL may be: docs/adr/0004-gil-release.md.
    RELEASE_GIL_IO_BYTES = 64 << 10
    MAX_PARTS = 64                  # of one writev
    HEADER_READ_BYTES = 4 << 10     # a forward scan reads this much; the distance between two index entries
    WALK_READ_BYTES = 256 << 10
    OFFSET_ENTRY_SIZE = 8
    TIME_ENTRY_SIZE = 12
    INDEX_CHUNK_BYTES = 16 << 10    # as `WRITE_CHUNK_BYTES` of storage/index.py: a tail of so many bytes is stored
    MAX_RELATIVE_OFFSET = 0x7FFFFFFF


cdef ssize_t _pread(int fd, void* target, size_t size, int64_t position) noexcept nogil:
    """Read all bytes, or those before the end of the file. Returns -1 with errno after an error."""
    cdef size_t done = 0
    cdef ssize_t got
    while done < size:
        got = pread(fd, <uint8_t*>target + done, size - done, <off_t>(position + <int64_t>done))
        if got < 0:
            if errno == EINTR:
                continue
            return -1
        if got == 0:
            break
        done += <size_t>got
    return <ssize_t>done


# ---- Mapping ----

cdef class Mapping:
    cdef void* _data
    cdef size_t _size_bytes

    def __cinit__(self, int fd, int64_t position, Py_ssize_t size_bytes):
        cdef void* data
        if size_bytes <= 0 or position < 0:
            raise ValueError(f"cannot map {size_bytes} bytes at {position}")
        data = mmap(NULL, <size_t>size_bytes, PROT_READ, MAP_SHARED, fd, <off_t>position)
        if data == MAP_FAILED:
            PyErr_SetFromErrno(OSError)
        self._data = data
        self._size_bytes = <size_t>size_bytes

    def __dealloc__(self):
        if self._data != NULL:
            munmap(self._data, self._size_bytes)

    def __len__(self):
        return <Py_ssize_t>self._size_bytes

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self._data, <Py_ssize_t>self._size_bytes, 1, flags)


# ---- Append ----

cdef int64_t _write_parts(int fd, iovec* parts, int count) noexcept nogil:
    """Write every byte of the parts, which it advances. Returns -1 with errno after an error."""
    cdef int64_t total = 0
    cdef ssize_t written
    while count:
        written = writev(fd, parts, count) if count > 1 else write(fd, parts.iov_base, parts.iov_len)
        if written < 0:
            if errno == EINTR:
                continue
            return -1
        total += written
        while count and <size_t>written >= parts.iov_len:
            written -= <ssize_t>parts.iov_len
            parts += 1
            count -= 1
        if count:
            parts.iov_base = <uint8_t*>parts.iov_base + written
            parts.iov_len -= <size_t>written
    return total


cdef int64_t _append_some(int fd, object buffers) except -1:
    cdef Py_buffer[MAX_PARTS] views
    cdef iovec[MAX_PARTS] parts
    cdef int held = 0
    cdef int count = 0
    cdef int64_t size = 0
    cdef int64_t written = 0
    try:
        for buffer in buffers:
            PyObject_GetBuffer(buffer, &views[held], PyBUF_SIMPLE)
            held += 1
            if views[held - 1].len:
                parts[count].iov_base = views[held - 1].buf
                parts[count].iov_len = <size_t>views[held - 1].len
                size += views[held - 1].len
                count += 1
        if size >= RELEASE_GIL_IO_BYTES:
            with nogil:
                written = _write_parts(fd, parts, count)
        else:
            written = _write_parts(fd, parts, count)
        if written < 0:
            PyErr_SetFromErrno(OSError)
        return written
    finally:
        while held:
            held -= 1
            PyBuffer_Release(&views[held])


cdef int _append_one(int fd, const uint8_t* p, size_t size_bytes) except -1:
    cdef iovec part
    cdef int64_t written
    part.iov_base, part.iov_len = <void*>p, size_bytes
    if size_bytes >= RELEASE_GIL_IO_BYTES:
        with nogil:
            written = _write_parts(fd, &part, 1)
    else:
        written = _write_parts(fd, &part, 1)
    if written < 0:
        PyErr_SetFromErrno(OSError)
    return 0


def append(int fd, buffers):
    cdef Py_ssize_t count = len(buffers)
    cdef Py_ssize_t start
    cdef int64_t written = 0
    if count <= MAX_PARTS:
        return _append_some(fd, buffers)
    for start in range(0, count, MAX_PARTS):
        written += _append_some(fd, buffers[start:start + MAX_PARTS])
    return written


# The function of this module, also while a test has replaced its name `append`.
cdef object _append = append


cdef class IndexBase:
    pass


cdef uint8_t* _grown(bytearray tail, Py_ssize_t entry_bytes) except NULL:
    """Returns where the new last entry of a tail is written."""
    cdef Py_ssize_t at = PyByteArray_GET_SIZE(tail)
    PyByteArray_Resize(tail, at + entry_bytes)
    return <uint8_t*>PyByteArray_AS_STRING(tail) + at


cdef class SegmentBase:
    cdef bint has_room(self, int64_t size_bytes, object config) except -1:
        cdef int64_t position = self.size_bytes
        if position == 0:
            return False
        if self._limits_of is not config:
            self._set_limits(config)
        return not self._is_index_full and size_bytes <= self._most_bytes - position

    cdef bint takes(self, int64_t size_bytes, int64_t last_offset, int64_t max_timestamp_ms, object config) except -1:
        cdef int64_t first_ms
        if (
            not self.has_room(size_bytes, config)
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
            or self.first_timestamp_ms is None
            or self.max_timestamp_ms is None
        ):
            return False
        first_ms = self.first_timestamp_ms
        if first_ms < 0 or max_timestamp_ms - first_ms > self._longest_wait_ms:
            return False
        if self.bytes_since_index > self._interval_bytes and not self._has_index_tails():
            self._load_indexes()
        return self._fd >= 0        # last, because opening other files may have closed it to stay within the budget

    cdef int put_at(
        self, object put, object whole, Py_ssize_t start, uint8_t* p, int64_t size_bytes, int64_t last_offset,
        int64_t max_timestamp_ms
    ) except -1:
        cdef int64_t position = self.size_bytes
        cdef int64_t known_ms = self.max_timestamp_ms
        try:
            if put is _append:
                _append_one(self._fd, p, <size_t>size_bytes)
            else:
                put(self._fd, (whole if start == 0 else memoryview(whole)[start:start + size_bytes],))
        except BaseException:
            self._cut_back(position)
            raise
        if max_timestamp_ms > known_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = last_offset
        self.size_bytes = position + size_bytes
        if self.bytes_since_index > self._interval_bytes:
            if self._has_index_tails() and position <= MAX_RELATIVE_OFFSET:
                self._index_plain(last_offset, position)
            else:
                self._index(last_offset, position)
        self.bytes_since_index += size_bytes
        return 0

    cdef bint _has_index_tails(self) except -1:
        cdef IndexBase offsets = self._offset_index
        cdef IndexBase times = self._time_index
        return (
            offsets is not None
            and times is not None
            and offsets.tail is not None
            and times.tail is not None
            and (PyByteArray_GET_SIZE(times.tail) > 0 or times.stored_bytes == 0)
            and PyByteArray_GET_SIZE(offsets.tail) < INDEX_CHUNK_BYTES - OFFSET_ENTRY_SIZE
            and PyByteArray_GET_SIZE(times.tail) < INDEX_CHUNK_BYTES - TIME_ENTRY_SIZE
        )

    cdef int _index_plain(self, int64_t last_offset, int64_t position) except -1:
        cdef bytearray offsets = self._offset_index.tail
        cdef bytearray times = self._time_index.tail
        cdef Py_ssize_t times_bytes = PyByteArray_GET_SIZE(times)
        cdef int64_t max_timestamp_ms = self.max_timestamp_ms
        cdef int64_t last_ms = -1
        cdef uint8_t* p = _grown(offsets, OFFSET_ENTRY_SIZE)
        store_i32(p, <int32_t>(last_offset - self.base_offset))
        store_i32(p + 4, <int32_t>position)
        if times_bytes:
            last_ms = load_i64(<const uint8_t*>PyByteArray_AS_STRING(times) + times_bytes - TIME_ENTRY_SIZE)
        if max_timestamp_ms > last_ms:
            p = _grown(times, TIME_ENTRY_SIZE)
            store_i64(p, max_timestamp_ms)
            store_i32(p + 8, <int32_t>(self.max_timestamp_offset - self.base_offset))
        # Only what `_set_limits` would find anew.
        self._is_index_full = (
            (self._offset_index.stored_bytes + PyByteArray_GET_SIZE(offsets)) // OFFSET_ENTRY_SIZE
            >= self._most_index_bytes // OFFSET_ENTRY_SIZE
            or (self._time_index.stored_bytes + PyByteArray_GET_SIZE(times)) // TIME_ENTRY_SIZE
            >= self._most_index_bytes // TIME_ENTRY_SIZE - 1
        )
        self.bytes_since_index = 0
        return 0

    cdef bint find_at(self, int64_t offset, Found* found) except -1:
        cdef IndexBase index
        cdef int64_t position = 0
        cdef const uint8_t* entries
        cdef Py_ssize_t count
        cdef int outcome
        if offset > self.base_offset:
            index = self._offset_index
            if index is None:
                index = <IndexBase?>self.offset_index    # loads it
            entries = <const uint8_t*>PyByteArray_AS_STRING(index.tail)
            count = PyByteArray_GET_SIZE(index.tail) // OFFSET_ENTRY_SIZE
            count = _count_to(entries, count, OFFSET_ENTRY_SIZE, offset - self.base_offset)
            if count:
                position = load_i32(entries + count * OFFSET_ENTRY_SIZE - 4)
            elif index.stored_bytes:
                position = index.lookup(offset - self.base_offset)[1]
        if self._fd < 0:
            self.fd         # opens it; last, because opening other files may close it to stay within the budget
        outcome = _find_batch(self._fd, position, self.size_bytes, offset, found)
        if outcome < 0:
            PyErr_SetFromErrno(OSError)
        return outcome

    cdef Py_ssize_t read_into(self, uint8_t* target, int64_t position, Py_ssize_t size_bytes) except -1:
        cdef ssize_t got = _pread(self._fd, target, <size_t>size_bytes, position)
        if got < 0:
            PyErr_SetFromErrno(OSError)
        return got

    def append_plain(
        self, put, batch, int64_t size_bytes, int64_t last_offset, int64_t max_timestamp_ms, config not None
    ):
        cdef Py_buffer view
        if not self.takes(size_bytes, last_offset, max_timestamp_ms, config):
            return False
        PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
        try:
            if put is _append and view.len != size_bytes:
                raise ValueError(f"a batch of {view.len} bytes is not one of {size_bytes}")
            self.put_at(put, batch, 0, <uint8_t*>view.buf, size_bytes, last_offset, max_timestamp_ms)
        finally:
            PyBuffer_Release(&view)
        return True

    def _cut_back(self, int64_t position):
        raise NotImplementedError("abstract: a segment truncates its file here")

    def _set_limits(self, config):
        raise NotImplementedError("abstract: a segment notes its limits here")

    def _load_indexes(self):
        raise NotImplementedError("abstract: a segment loads its indexes here")

    def _index(self, int64_t last_offset, int64_t position):
        raise NotImplementedError("abstract: a segment indexes a batch here")


# ---- Read ----

def read(int fd, int64_t position, Py_ssize_t size_bytes):
    cdef bytes data
    cdef char* target
    cdef ssize_t got
    if position < 0 or size_bytes < 0:
        raise ValueError(f"position {position} and size {size_bytes} must not be negative")
    data = PyBytes_FromStringAndSize(NULL, size_bytes)
    target = PyBytes_AS_STRING(data)
    if size_bytes >= RELEASE_GIL_IO_BYTES:
        with nogil:
            got = _pread(fd, target, <size_t>size_bytes, position)
    else:
        got = _pread(fd, target, <size_t>size_bytes, position)
    if got < 0:
        PyErr_SetFromErrno(OSError)
    return data if got == size_bytes else data[:got]


# ---- Search ----

cdef int _find_batch(int fd, int64_t position, int64_t end_position, int64_t offset, Found* found) noexcept nogil:
    """Return 1 if found, 0 if not, -1 with errno. Reads a block, uses every header in it, and skips larger batches."""
    cdef uint8_t[HEADER_READ_BYTES] block
    cdef const uint8_t* p
    cdef int64_t block_position = position
    cdef int64_t block_size = 0
    cdef int64_t wanted
    while end_position - position >= BATCH_HEADER_SIZE:
        if position + BATCH_HEADER_SIZE > block_position + block_size or position < block_position:
            wanted = end_position - position
            if wanted > HEADER_READ_BYTES:
                wanted = HEADER_READ_BYTES
            block_position = position
            block_size = _pread(fd, block, <size_t>wanted, position)
            if block_size < 0:
                return -1
            if block_size < BATCH_HEADER_SIZE:
                return 0
        p = block + (position - block_position)
        if check_bounds(p, end_position - position) != Verdict.OK or check_header(p) != Verdict.OK:
            return 0
        found.position = position
        found.size_bytes = LENGTH_END + <int64_t>load_i32(p + AT_LENGTH)
        found.base_offset = load_i64(p + AT_BASE_OFFSET)
        found.last_offset = <int64_t>(<uint64_t>found.base_offset + <uint64_t>load_i32(p + AT_LAST_OFFSET_DELTA))
        if found.last_offset >= offset:
            return 1
        position += found.size_bytes
    return 0


def find_batch(int fd, int64_t position, int64_t end_position, int64_t offset):
    cdef Found found
    cdef int outcome
    if position < 0:
        raise ValueError(f"position {position} must not be negative")
    outcome = _find_batch(fd, position, end_position, offset, &found)
    if outcome < 0:
        PyErr_SetFromErrno(OSError)
    return (found.position, found.size_bytes, found.base_offset, found.last_offset) if outcome else None


cdef inline int64_t _key(const uint8_t* entry, Py_ssize_t entry_size) noexcept nogil:
    return load_i32(entry) if entry_size == OFFSET_ENTRY_SIZE else load_i64(entry)


cdef Py_ssize_t _count_to(
    const uint8_t* entries, Py_ssize_t count, Py_ssize_t entry_size, int64_t target
) noexcept nogil:
    """How many of these entries, which are in order, have a key at or below `target`."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t middle
    # Entries below `low` are at or below the target, those from `count` on are above it.
    while low < count:
        middle = (low + count) // 2
        if _key(entries + middle * entry_size, entry_size) <= target:
            low = middle + 1
        else:
            count = middle
    return low


cdef _last_to(index, Py_ssize_t size_bytes, Py_ssize_t entry_size, int64_t target):
    """The two fields of the last entry whose key is at or below `target`; None when there is none."""
    cdef Py_buffer view
    cdef const uint8_t* entries
    cdef Py_ssize_t count
    PyObject_GetBuffer(index, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= size_bytes <= view.len:
            raise ValueError(f"{size_bytes} bytes are not inside an index of {view.len}")
        entries = <const uint8_t*>view.buf
        count = _count_to(entries, size_bytes // entry_size, entry_size, target)
        if count == 0:
            return None
        entries += (count - 1) * entry_size
        return _key(entries, entry_size), load_i32(entries + entry_size - 4)
    finally:
        PyBuffer_Release(&view)


def lookup_offset(index, Py_ssize_t size_bytes, int64_t relative_offset):
    return _last_to(index, size_bytes, OFFSET_ENTRY_SIZE, relative_offset) or (0, 0)


def lookup_time(index, Py_ssize_t size_bytes, int64_t timestamp_ms):
    return _last_to(index, size_bytes, TIME_ENTRY_SIZE, timestamp_ms) or (-1, 0)


# ---- Walk ----

@cython.final
cdef class Walk:
    cdef readonly int64_t position
    cdef readonly int64_t next_offset
    cdef Verdict _verdict
    cdef int fd
    cdef int64_t end_position
    cdef bint check_crc
    # A window of the file: [window_position, window_position + window_size) is in `window`.
    cdef uint8_t* window
    cdef int64_t window_position
    cdef int64_t window_size

    def __cinit__(self, int fd, int64_t position, int64_t end_position, bint check_crc=True, int64_t next_offset=0):
        if position < 0 or end_position < position:
            raise ValueError(f"no file range [{position}, {end_position})")
        self.window = <uint8_t*>malloc(WALK_READ_BYTES)
        if self.window == NULL:
            raise MemoryError
        self.fd = fd
        self.position = position
        self.end_position = end_position
        self.check_crc = check_crc
        self.next_offset = next_offset
        self._verdict = Verdict.OK

    def __dealloc__(self):
        free(self.window)

    @property
    def verdict(self):
        return _Verdict(self._verdict)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Batch batch
        cdef const uint8_t* header
        cdef Verdict verdict = Verdict.OK
        if self._verdict != Verdict.OK or self.position >= self.end_position:
            raise StopIteration
        PyErr_CheckSignals()
        if self._fill(self.position) < 0:
            PyErr_SetFromErrno(OSError)
        header = self.window + (self.position - self.window_position)
        # When the file is shorter than the range, the window's end is what may be read.
        if self.window_position + self.window_size < min(self.position + BATCH_HEADER_SIZE, self.end_position):
            self._verdict = Verdict.TRUNCATED
            raise StopIteration
        verdict = check_bounds(header, self.end_position - self.position)
        if verdict == Verdict.OK:
            batch = read_header(header, self.position)
            if self.check_crc:
                verdict = self._check_crc(header, batch.size_bytes)
            else:
                verdict = check_header(header)
            if verdict == Verdict.OK and batch.base_offset < self.next_offset:
                verdict = Verdict.OUT_OF_ORDER
        if verdict != Verdict.OK:
            self._verdict = verdict
            raise StopIteration
        self.position += batch.size_bytes
        self.next_offset = <int64_t>(<uint64_t>batch.base_offset + <uint64_t>batch.last_offset_delta + 1)
        return batch

    cdef int _fill(self, int64_t position) except? -1:
        """Have a header at `position` in the window, if the range has one; -1 with errno."""
        cdef int64_t wanted
        cdef ssize_t got
        if position >= self.window_position and (
            position + BATCH_HEADER_SIZE <= self.window_position + self.window_size
        ):
            return 0
        wanted = min(<int64_t>WALK_READ_BYTES, self.end_position - position)
        with nogil:
            got = _pread(self.fd, self.window, <size_t>wanted, position)
        self.window_position = position
        self.window_size = max(got, 0)
        return -1 if got < 0 else 0

    cdef Verdict _check_crc(self, const uint8_t* header, int64_t size_bytes) except *:
        """CRC of a batch of any size through the window, then its header's facts."""
        cdef uint32_t expected = load_u32(header + AT_CRC)
        cdef Verdict facts = check_header(header)
        cdef uint32_t crc = 0
        cdef int64_t at = self.position + AT_ATTRIBUTES
        cdef int64_t end = self.position + size_bytes
        cdef int64_t part
        cdef ssize_t got
        while at < end:
            if at >= self.window_position + self.window_size:
                part = min(<int64_t>WALK_READ_BYTES, self.end_position - at)
                with nogil:
                    got = _pread(self.fd, self.window, <size_t>part, at)
                self.window_position = at
                self.window_size = max(got, 0)
                if got < 0:
                    PyErr_SetFromErrno(OSError)
                if got == 0:
                    return Verdict.TRUNCATED
            part = min(end, self.window_position + self.window_size) - at
            crc = crc32c_update(crc, self.window + (at - self.window_position), <size_t>part)
            at += part
        return facts if crc == expected else Verdict.BAD_CRC

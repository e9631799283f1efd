"""The codecs of record batches, through zlib, cramjam and the system's libzstd. The output never exceeds the limit.

Before a codec decompresses, it derives a bound of the output from the framing: snappy blocks have their length, an lz4
frame has its largest block size, a zstd frame has its block headers. The output is one buffer of at most the limit,
which the library cannot overrun. gzip has no size in advance, but zlib itself accepts a limit.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from kafka_shim.cext.bigendian cimport load_u32, store_u32
from kafka_shim.cext.varint cimport read_uvarint

cdef extern from *:
    """
    #include <stddef.h>
    #if defined(__linux__)
    #include <dlfcn.h>
    #endif

    static struct {
        void* (*create)(void);
        size_t (*begin)(void* context);
        size_t (*next_size)(void* context);
        size_t (*go_on)(void* context, void* target, size_t size, const void* source, size_t source_size);
        unsigned (*is_error)(size_t code);
        size_t (*release)(void* context);
    } system_zstd;

    /* Finds the library of the system, whose names and types are these since version 1.0. Returns 0 without
       it, or without the functions for blocks, which a version may hide. */
    static int find_system_zstd(void) {
    #if defined(__linux__)
        void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            *(void**)&system_zstd.create = dlsym(library, "ZSTD_createDCtx");
            *(void**)&system_zstd.begin = dlsym(library, "ZSTD_decompressBegin");
            *(void**)&system_zstd.next_size = dlsym(library, "ZSTD_nextSrcSizeToDecompress");
            *(void**)&system_zstd.go_on = dlsym(library, "ZSTD_decompressContinue");
            *(void**)&system_zstd.is_error = dlsym(library, "ZSTD_isError");
            *(void**)&system_zstd.release = dlsym(library, "ZSTD_freeDCtx");
        }
    #endif
        return system_zstd.create != NULL && system_zstd.begin != NULL && system_zstd.next_size != NULL
            && system_zstd.go_on != NULL && system_zstd.is_error != NULL && system_zstd.release != NULL;
    }

    /* Returns how much it has written, or -1. It calls for each block what a stream calls, which refuses blocks that
       are too large. The functions for a whole frame take them. */
    static long long decompress_by_system(
        void* context, void* target, size_t size, const void* source, size_t source_size
    ) {
        char* to = target;
        const char* from = source;
        while (source_size > 0) {
            size_t taken;
            if (system_zstd.is_error(system_zstd.begin(context))) return -1;
            while ((taken = system_zstd.next_size(context)) > 0) {
                size_t written;
                if (taken > source_size) return -1;
                written = system_zstd.go_on(context, to, size, from, taken);
                if (system_zstd.is_error(written)) return -1;
                to += written;
                size -= written;
                from += taken;
                source_size -= taken;
            }
        }
        return to - (char*)target;
    }

    static void* create_context(void) { return system_zstd.create(); }

    static void release_context(void* context) { system_zstd.release(context); }
    """
    bint find_system_zstd() noexcept
    void* create_context() noexcept
    void release_context(void* context) noexcept
    int64_t decompress_by_system(
        void* context, void* target, size_t size, const void* source, size_t source_size
    ) noexcept nogil

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_LIMIT_BYTES = 128 << 20
STORED_LIMIT_BYTES = 0x7FFFFFFF

cdef enum:
    # xerial: magic, version, least compatible version; then (length, snappy block) pairs.
    XERIAL_HEADER_SIZE = 16
    XERIAL_MAGIC_SIZE = 8
    XERIAL_BLOCK_SIZE = 32 << 10
    # lz4 frame: version 1, independent blocks, no checksums, no content size; blocks of 64 KB.
    LZ4_FLG = 0x60
    LZ4_BD = 0x40
    LZ4_BLOCK_SIZE = 64 << 10
    LZ4_FAST_LEVEL = 9              # Kafka's default; its other levels mean the slow compressor
    LZ4_BEST_LEVEL = 9              # of the library
    GZIP_MOST_MEMBERS = 2000        # a producer's library writes one
    GZIP_PIECE_SIZE = 4 << 10
    GZIP_STEP_SIZE = 16 << 20       # zlib joins what one call gives: its peak is twice the result
    GZIP_LIKELY_RATIO = 8           # taken for the ratio where the data says less
    GZIP_BEST_RATIO = 1032
    LZ4_BEST_RATIO = 255
    ZSTD_DEFAULT_LEVEL = 3
    ZSTD_BLOCK_SIZE = 128 << 10
    ZSTD_STREAM_WINDOW = 1 << 27    # about the largest of a stream; what is larger is for cramjam to judge
    RELEASE_GIL_UNPACK_BYTES = 256 << 10

cdef bytes XERIAL_HEADER = b"\x82SNAPPY\0" b"\0\0\0\x01" b"\0\0\0\x01"


class DecompressError(Exception):
    pass


class LimitExceeded(DecompressError):
    pass


def compress(int codec, data, level=None):
    if codec == 0:
        return data
    if codec == 1:
        return _gzip(data, level)
    if codec == 2:
        return _xerial(data)
    if codec == 3:
        return _lz4(data, level)
    if codec == 4:
        import cramjam
        return cramjam.zstd.compress(data, ZSTD_DEFAULT_LEVEL if level is None else level)
    raise ValueError(f"no codec {codec}")


def decompress(int codec, data, int64_t limit_bytes=DEFAULT_LIMIT_BYTES):
    if codec == 0:
        if len(data) > limit_bytes:
            raise LimitExceeded(f"{len(data)} bytes, {limit_bytes} allowed")
        return data
    if codec == 1:
        return _gunzip(data, limit_bytes)
    if codec == 2:
        return _unsnappy(data, limit_bytes)
    if codec == 3:
        return _unlz4(data, limit_bytes)
    if codec == 4:
        return _unzstd(data, limit_bytes)
    raise ValueError(f"no codec {codec}")


def expected_bytes(int codec, data):
    cdef Py_buffer view
    cdef const uint8_t* p
    cdef int64_t found = 0
    cdef bint at_once = True
    cdef list blocks = []
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        p = <const uint8_t*>view.buf
        if codec == 0:
            found = view.len
        elif codec == 1:
            if view.len >= 4:
                found = min(<int64_t>_load_little(p + view.len - 4), view.len * GZIP_BEST_RATIO)
                found = max(found, view.len * GZIP_LIKELY_RATIO)
        elif codec == 2:
            if _is_xerial(p, view.len):
                blocks = _xerial_blocks(p, view.len, STORED_LIMIT_BYTES)
                found = sum([block[2] for block in blocks])
            else:
                found = max(_snappy_length(p, view.len), 0)
        elif codec == 3:
            found = _lz4_blocks(p, view.len, blocks) * len(blocks)
            found = min(found, view.len * LZ4_BEST_RATIO)
        elif codec == 4:
            found = _zstd_bound(p, view.len, &at_once)
        return found
    except DecompressError:
        return 0
    finally:
        PyBuffer_Release(&view)


cdef object _too_large(int64_t limit_bytes):
    return LimitExceeded(f"the data decompresses to more than {limit_bytes} bytes")


# ---- gzip ----

cdef object _gzip(object data, object level):
    import zlib
    return zlib.compress(data, -1 if level is None else level, wbits=31)


cdef object _gunzip(object data, int64_t limit_bytes):
    """All members. Java's stream reads them one after the other and takes anything else after one as its end.

    zlib copies what follows a member, so that only the first one, which is all of a client's data, gets everything at
    once; the others are fed in pieces: the time is linear in the size."""
    import zlib
    cdef list parts = []
    cdef bytes part
    cdef int64_t room = limit_bytes
    cdef int64_t step
    cdef Py_ssize_t size = len(data)
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t end = size
    cdef int members = 0
    view = memoryview(data)
    while True:
        members += 1
        if members > GZIP_MOST_MEMBERS:
            raise DecompressError(f"gzip: more than {GZIP_MOST_MEMBERS} members")
        stream = zlib.decompressobj(wbits=31)
        while True:
            piece = view[at:end]
            while True:
                # One byte more than allowed tells "exactly full" from "too much"; 0 would mean no limit.
                step = min(room + 1, GZIP_STEP_SIZE)
                try:
                    part = stream.decompress(piece, step)
                except zlib.error as error:
                    raise DecompressError(f"gzip: {error}") from None
                room -= len(part)
                if room < 0:
                    raise _too_large(limit_bytes)
                parts.append(part)
                piece = stream.unconsumed_tail
                if stream.eof or (len(part) < step and not piece):
                    break
            at = end - len(stream.unused_data)
            if stream.eof:
                break
            if at == size:
                raise DecompressError("gzip: the data ends early")
            end = min(at + GZIP_PIECE_SIZE, size)
        if size - at < 2 or view[at] != 0x1F or view[at + 1] != 0x8B:
            return part if len(parts) == 1 else b"".join(parts)
        end = min(at + GZIP_PIECE_SIZE, size)


# ---- snappy ----

cdef object _xerial(object data):
    import cramjam
    compress_raw = cramjam.snappy.compress_raw
    cdef bytearray out = bytearray(XERIAL_HEADER)
    cdef uint8_t[4] length
    cdef Py_ssize_t start
    view = memoryview(data)
    for start in range(0, len(view), XERIAL_BLOCK_SIZE):
        block = compress_raw(view[start:start + XERIAL_BLOCK_SIZE])
        store_u32(length, <uint32_t>len(block))
        out += (<char*>length)[:4]
        out += block
    return out


cdef bint _is_xerial(const uint8_t* p, int64_t size) noexcept nogil:
    cdef const uint8_t* magic = b"\x82SNAPPY\0"
    return size >= XERIAL_HEADER_SIZE and memcmp(p, magic, XERIAL_MAGIC_SIZE) == 0


cdef int64_t _snappy_length(const uint8_t* p, int64_t size) noexcept nogil:
    """Return the output length in a block's header, or -1 if there is none."""
    cdef uint32_t length = 0
    if read_uvarint(p, p + size, &length) == NULL:
        return -1
    return length


cdef list _xerial_blocks(const uint8_t* p, int64_t size, int64_t limit_bytes):
    """(start, end, output length) of every block."""
    cdef list blocks = []
    cdef int64_t at = 0
    cdef int64_t total = 0
    cdef int64_t length
    cdef int64_t block_size
    while at < size:
        # Streams may be concatenated, each with its header.
        if _is_xerial(p + at, size - at):
            at += XERIAL_HEADER_SIZE
            continue
        if size - at < 4:
            break       # Java's stream takes it for the end
        block_size = load_u32(p + at)
        at += 4
        if block_size > size - at:
            raise DecompressError("snappy: a block exceeds the data")
        length = _snappy_length(p + at, block_size)
        if length < 0:
            raise DecompressError("snappy: a block has no length")
        total += length
        if total > limit_bytes:
            raise _too_large(limit_bytes)
        blocks.append((at, at + block_size, length))
        at += block_size
    return blocks


cdef object _unsnappy(object data, int64_t limit_bytes):
    import cramjam
    decompress_into = cramjam.snappy.decompress_raw_into
    cdef Py_buffer view
    cdef int64_t length
    cdef int64_t at = 0
    cdef list blocks
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if _is_xerial(<const uint8_t*>view.buf, view.len):
            blocks = _xerial_blocks(<const uint8_t*>view.buf, view.len, limit_bytes)
        else:
            length = _snappy_length(<const uint8_t*>view.buf, view.len)
            if length < 0:
                raise DecompressError("snappy: the data has no length")
            if length > limit_bytes:
                raise _too_large(limit_bytes)
            blocks = [(0, view.len, length)]
    finally:
        PyBuffer_Release(&view)
    out = bytearray(sum([block[2] for block in blocks]))
    source = memoryview(data)
    target = memoryview(out)
    for start, end, length in blocks:
        try:
            written = decompress_into(source[start:end], target[at:at + length])
        except Exception as error:
            raise DecompressError(f"snappy: {error}") from None
        if written != length:
            raise DecompressError("snappy: a block is shorter than it says")
        at += length
    return out


# ---- lz4 ----

cdef inline uint32_t _load_little(const uint8_t* p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef inline uint32_t _rotate(uint32_t value, int bits) noexcept nogil:
    return value << bits | value >> (32 - bits)


cdef uint8_t _lz4_header_check(const uint8_t* p, int64_t size) noexcept nogil:
    """The second byte of xxHash-32 of a frame descriptor, which is always shorter than the hash's 16-byte stripe."""
    cdef uint32_t prime1 = 2654435761u
    cdef uint32_t prime2 = 2246822519u
    cdef uint32_t prime3 = 3266489917u
    cdef uint32_t prime4 = 668265263u
    cdef uint32_t prime5 = 374761393u
    cdef uint32_t h = prime5 + <uint32_t>size
    while size >= 4:
        h = _rotate(h + _load_little(p) * prime3, 17) * prime4
        p += 4
        size -= 4
    while size > 0:
        h = _rotate(h + p[0] * prime5, 11) * prime1
        p += 1
        size -= 1
    h = (h ^ h >> 15) * prime2
    h = (h ^ h >> 13) * prime3
    h ^= h >> 16
    return <uint8_t>(h >> 8)


cdef object _lz4(object data, object level):
    import cramjam
    cdef uint8_t[7] header = [0x04, 0x22, 0x4D, 0x18, LZ4_FLG, LZ4_BD, 0]
    cdef Py_ssize_t start
    header[6] = _lz4_header_check(header + 4, 2)
    cdef bytearray out = bytearray((<char*>header)[:7])
    view = memoryview(data)
    for start in range(0, len(view), LZ4_BLOCK_SIZE):
        plain = view[start:start + LZ4_BLOCK_SIZE]
        if level is None or level == LZ4_FAST_LEVEL:
            block = cramjam.lz4.compress_block(plain, store_size=False)
        else:
            # The library's block function has no levels. Its frame of one block has: 7 bytes of header, 4 of length.
            # Above 9 it compresses text worse than at 9.
            framed = memoryview(cramjam.lz4.compress(plain, min(level, LZ4_BEST_LEVEL)))
            size = int.from_bytes(framed[7:11], "little")
            block = plain if size & 0x80000000 else framed[11:11 + size]
        size = len(block)
        if size >= len(plain):
            out += (len(plain) | 0x80000000).to_bytes(4, "little")
            out += plain
        else:
            out += size.to_bytes(4, "little")
            out += block
    out += b"\0\0\0\0"
    return out


cdef int64_t _lz4_blocks(const uint8_t* p, int64_t size, list blocks) except -1:
    """List (start, end, is compressed) of every block. Returns the most bytes that one of them may decompress to."""
    cdef int64_t at
    cdef int64_t largest
    cdef int64_t length
    cdef uint32_t field
    cdef uint8_t flags
    if size < 7 or _load_little(p) != 0x184D2204:
        raise DecompressError("lz4: no frame")
    flags = p[4]
    # Kafka does not read frames whose blocks depend on each other or on a dictionary.
    if flags & 0xE3 != LZ4_FLG:
        raise DecompressError("lz4: unsupported frame flags")
    if p[5] & 0x8F or p[5] < LZ4_BD:
        raise DecompressError("lz4: bad block size")
    largest = <int64_t>1 << (8 + 2 * (p[5] >> 4))
    at = 14 if flags & 0x08 else 6
    if size <= at or p[at] != _lz4_header_check(p + 4, at - 4):
        raise DecompressError("lz4: the frame header's check does not match")
    at += 1
    while True:
        if size - at < 4:
            raise DecompressError("lz4: the data ends early")
        field = _load_little(p + at)
        at += 4
        if field == 0 or field == 0x80000000u:
            return largest      # the end mark; a content checksum is left alone, as the batch has its own
        length = field & 0x7FFFFFFF
        if length > largest or length > size - at:
            raise DecompressError("lz4: a block exceeds its frame")
        blocks.append((at, at + length, field < 0x80000000u))
        at += length + (4 if flags & 0x10 else 0)
        if at > size:
            raise DecompressError("lz4: the data ends early")


cdef object _unlz4(object data, int64_t limit_bytes):
    import cramjam
    decompress_into = cramjam.lz4.decompress_block_into
    cdef Py_buffer view
    cdef list blocks = []
    cdef int64_t largest
    cdef int64_t bound = 0
    cdef int64_t at = 0
    cdef int64_t room
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        largest = _lz4_blocks(<const uint8_t*>view.buf, view.len, blocks)
    finally:
        PyBuffer_Release(&view)
    for start, end, compressed in blocks:
        bound += largest if compressed else end - start
    out = bytearray(min(bound, limit_bytes))
    source = memoryview(data)
    with memoryview(out) as target:
        for start, end, compressed in blocks:
            room = len(out) - at
            if not compressed:
                if end - start > room:
                    raise _too_large(limit_bytes)
                target[at:at + end - start] = source[start:end]
                at += end - start
                continue
            try:
                at += decompress_into(source[start:end], target[at:at + min(room, largest)])
            except Exception as error:
                # Near the limit a block may fail because of invalid data or the limit. Both reject the batch.
                if room < largest:
                    raise _too_large(limit_bytes) from None
                raise DecompressError(f"lz4: {error}") from None
    del out[at:]
    return out


# ---- zstd ----

cdef int _has_system_zstd = -1      # nobody has looked for it yet
# The library's state of a decompression, 95 KB, between two of them; NULL while somebody has it.
cdef void* _spare_context = NULL


def use_system_zstd(bint wanted):
    global _has_system_zstd
    cdef int before = _has_system_zstd
    _has_system_zstd = wanted and find_system_zstd()
    return before != 0


cdef int64_t _unzstd_at_once(const uint8_t* p, int64_t size, uint8_t* target, int64_t target_size) noexcept:
    """Return the size of the output, or -1 if this library does not give it: it is then for the other one to say why.

    A stream is copied twice on its way and has buffers of its own: this takes a third of the time."""
    global _spare_context
    cdef void* context = _spare_context
    cdef int64_t written
    if context == NULL:
        context = create_context()
        if context == NULL:
            return -1
    _spare_context = NULL       # another thread may come while the GIL is released
    if target_size > RELEASE_GIL_UNPACK_BYTES:
        with nogil:
            written = decompress_by_system(context, target, <size_t>target_size, p, <size_t>size)
    else:
        written = decompress_by_system(context, target, <size_t>target_size, p, <size_t>size)
    if _spare_context == NULL:
        _spare_context = context
    else:
        release_context(context)
    return written


cdef int64_t _zstd_bound(const uint8_t* p, int64_t size, bint* at_once) except -1:
    """Return the most bytes that the frames decompress to, from their block headers; exact if they have a content
    size. Clears `at_once` if only a stream judges a frame as a stream does: one that may be longer than its window, of
    which it notices references to what has left, or has a window that a stream may not have, or a content size that
    blocks do not check because the last one is empty."""
    cdef const uint8_t* fcs_sizes = b"\x00\x02\x04\x08"
    cdef const uint8_t* dictionary_sizes = b"\x00\x01\x02\x04"
    cdef int64_t at = 0
    cdef int64_t total = 0
    cdef int64_t frame
    cdef int64_t window
    cdef int64_t length
    cdef uint64_t content
    cdef uint32_t magic
    cdef uint32_t block
    cdef uint8_t descriptor
    cdef int fcs_size
    cdef int i
    cdef int64_t kind
    while at < size:
        if size - at < 8:
            raise DecompressError("zstd: a frame header is cut off")
        magic = _load_little(p + at)
        if magic & 0xFFFFFFF0u == 0x184D2A50u:
            at += 8 + <int64_t>_load_little(p + at + 4)
            continue
        if magic != 0xFD2FB528u:
            raise DecompressError("zstd: no frame")
        descriptor = p[at + 4]
        at += 5
        window = ZSTD_STREAM_WINDOW - 1     # where the frame has none, it is all of the frame
        fcs_size = fcs_sizes[descriptor >> 6]
        if descriptor & 0x20:
            fcs_size = fcs_size if fcs_size else 1
        else:
            window = <int64_t>1 << (10 + (p[at] >> 3))
            window += (window >> 3) * (p[at] & 7)
            at += 1
        at += dictionary_sizes[descriptor & 3]
        if size - at < fcs_size:
            raise DecompressError("zstd: a frame header is cut off")
        content = 0
        for i in range(fcs_size):
            content |= <uint64_t>p[at + i] << (8 * i)
        if fcs_size == 2:
            content += 256
        at += fcs_size
        frame = 0
        while True:
            if size - at < 3:
                raise DecompressError("zstd: the data ends early")
            block = p[at] | <uint32_t>p[at + 1] << 8 | <uint32_t>p[at + 2] << 16
            at += 3
            kind = block >> 1 & 3
            length = block >> 3
            if kind == 3:
                raise DecompressError("zstd: unknown block type")
            frame += ZSTD_BLOCK_SIZE if kind == 2 else length
            at += 1 if kind == 1 else length
            if at > size:
                raise DecompressError("zstd: the data ends early")
            if block & 1:
                break
        if descriptor & 4:
            at += 4
        # A false content size can only be too small, which the library then reports.
        if fcs_size and content < <uint64_t>frame:
            frame = <int64_t>content
        if frame > window or window >= ZSTD_STREAM_WINDOW or (fcs_size and length == 0):
            at_once[0] = False
        total += frame
    return total


cdef object _unzstd(object data, int64_t limit_bytes):
    global _has_system_zstd
    cdef Py_buffer view
    cdef int64_t bound
    cdef int64_t written = -1
    cdef bint at_once = True
    cdef bytearray out
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        bound = _zstd_bound(<const uint8_t*>view.buf, view.len, &at_once)
        out = PyByteArray_FromStringAndSize(NULL, min(bound, limit_bytes))
        if bound == 0:
            return out
        if _has_system_zstd < 0:
            _has_system_zstd = find_system_zstd()
        if _has_system_zstd and at_once:
            written = _unzstd_at_once(<const uint8_t*>view.buf, view.len, <uint8_t*><char*>out, len(out))
    finally:
        PyBuffer_Release(&view)
    if written >= 0:
        del out[written:]
        return out
    import cramjam
    try:
        written = cramjam.zstd.decompress_into(data, out)
    except Exception as error:
        if bound > limit_bytes and "incomplete" not in str(error) and "corrupt" not in str(error):
            raise _too_large(limit_bytes) from None
        raise DecompressError(f"zstd: {error}") from None
    del out[written:]
    return out

import contextlib
import gzip
import random
import struct
import sys
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.compression import (
    GZIP,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    DecompressError,
    LimitExceeded,
    compress,
    decompress,
    expected_bytes,
    use_system_zstd,
)
from kafka_shim.cext.tests.exact import exact

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
TEXT = b"".join(b"line %d of a text that compresses\n" % (i * i) for i in range(9000))
NOISE = random.Random(3).randbytes(200_000)
SAMPLES = {"empty": b"", "byte": b"x", "text": TEXT, "noise": NOISE, "zeros": bytes(300_000), "block": bytes(65536)}


def unpack(codec, data, limit_bytes=1 << 20):
    with exact(bytes(data)) as buffer:
        return bytes(decompress(codec, buffer, limit_bytes))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", SAMPLES)
def test_round_trip_and_exact_limit(codec, name):
    plain = SAMPLES[name]
    packed = compress(codec, plain)
    assert unpack(codec, packed, len(plain)) == plain
    if plain:
        with pytest.raises(LimitExceeded):
            unpack(codec, packed, len(plain) - 1)


@given(st.sampled_from(CODECS), st.binary(max_size=2000))
def test_round_trip_of_anything(codec, plain):
    assert unpack(codec, compress(codec, plain)) == plain


@given(st.sampled_from(CODECS), st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_or_read(codec, data):
    with contextlib.suppress(DecompressError):
        assert len(unpack(codec, data, 1 << 16)) <= 1 << 16


@pytest.mark.parametrize("codec", CODECS)
def test_every_cut_is_refused_or_is_shorter(codec):
    packed = bytes(compress(codec, TEXT[:3000]))
    for size in range(len(packed)):
        with contextlib.suppress(DecompressError):
            assert len(unpack(codec, packed[:size])) < 3000


@pytest.mark.parametrize(("codec", "levels"), [(GZIP, (1, 6, -1, 9)), (LZ4, (1, 3, 8, 17)), (ZSTD, (-5, 3, 19))])
def test_a_higher_level_makes_less_of_the_same(codec, levels):
    sizes = []
    for level in levels:
        packed = compress(codec, TEXT, level)
        assert unpack(codec, packed) == TEXT
        sizes.append(len(packed))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_lz4_level_9_is_the_default():
    assert compress(LZ4, TEXT, 9) == compress(LZ4, TEXT)


def test_no_codec_is_the_data_itself():
    assert decompress(NONE, TEXT) is TEXT
    assert compress(NONE, TEXT) is TEXT
    with pytest.raises(LimitExceeded):
        decompress(NONE, b"abc", 2)


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_unknown_codecs_are_refused(codec):
    with pytest.raises(ValueError, match="no codec"):
        compress(codec, b"")
    with pytest.raises(ValueError, match="no codec"):
        decompress(codec, b"")


def test_codecs_have_kafkas_names():
    assert [NAMES[codec] for codec in (NONE, *CODECS)] == ["none", "gzip", "snappy", "lz4", "zstd"]


# ---- gzip ----


def test_gzip_members_follow_each_other():
    assert unpack(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"
    with pytest.raises(LimitExceeded):
        unpack(GZIP, gzip.compress(b"one ") + gzip.compress(b"two"), 6)


@pytest.mark.parametrize("sizes", [[100_000, 3, 0, 5000, 20_000, 1], [0] * 2000, [70_000] * 12])
def test_gzip_members_are_read_without_copying_the_rest_for_each(monkeypatch, sizes):
    copied = 0

    class Counting:
        def __init__(self, wbits):
            self.stream = decompressobj(wbits=wbits)

        def __getattr__(self, name):
            return getattr(self.stream, name)

        @property
        def unused_data(self):
            nonlocal copied
            copied += len(self.stream.unused_data)
            return self.stream.unused_data

    decompressobj = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    plain = [random.Random(size).randbytes(size) for size in sizes]
    packed = b"".join(map(gzip.compress, plain))
    assert unpack(GZIP, packed) == b"".join(plain)
    assert unpack(GZIP, packed + b"anything else") == b"".join(plain)
    assert copied < 2 * (len(packed) + len(sizes) * 4096 + 20)


def test_gzip_data_over_the_limit_costs_little_more_memory_than_the_limit():
    bomb = gzip.compress(bytes(100 << 20), 1)
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded):
            unpack(GZIP, bomb, 64 << 20)
        assert tracemalloc.get_traced_memory()[1] < (64 + 2 * 16 + 4) << 20
        assert len(unpack(GZIP, bomb, 100 << 20)) == 100 << 20  # several steps, and exactly full
    finally:
        tracemalloc.stop()


def test_gzip_members_are_bounded():
    with pytest.raises(DecompressError, match="members"):
        unpack(GZIP, gzip.compress(b"") * 2001)


def test_gzip_member_that_ends_early_behind_another():
    for size in (5, 15, 3000):
        packed = gzip.compress(TEXT) + gzip.compress(random.Random(1).randbytes(20_000))[:size]
        with pytest.raises(DecompressError, match="gzip"):
            unpack(GZIP, packed)


def test_gzip_with_a_wrong_checksum():
    packed = bytearray(gzip.compress(TEXT))
    packed[-8] ^= 1
    with pytest.raises(DecompressError, match="gzip"):
        unpack(GZIP, packed)


def test_gzip_bomb_stops_at_the_limit():
    bomb = gzip.compress(bytes(20 << 20))
    with pytest.raises(LimitExceeded):
        unpack(GZIP, bomb, 1 << 20)


def test_zlib_without_the_gzip_wrapper_is_refused():
    with pytest.raises(DecompressError):
        unpack(GZIP, zlib.compress(b"x"))


# ---- snappy ----


def test_snappy_raw_as_librdkafka_sends_it():
    assert unpack(SNAPPY, cramjam.snappy.compress_raw(TEXT)) == TEXT


def test_snappy_xerial_header_and_blocks():
    packed = bytes(compress(SNAPPY, TEXT))
    assert packed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    (size,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + size])) == TEXT[: 32 << 10]


def test_snappy_xerial_of_other_versions_and_joined_streams():
    # Some producers write the two version numbers in the other byte order.
    block = bytes(cramjam.snappy.compress_raw(b"hello"))
    stream = b"\x82SNAPPY\0" + struct.pack("<ii", 1, 1) + struct.pack(">i", len(block)) + block
    assert unpack(SNAPPY, stream + stream) == b"hellohello"


@pytest.mark.parametrize("length", [2**32 - 1, 2**31, 2**20 + 1])
def test_snappy_length_that_lies_is_refused_before_memory_is_taken(length):
    varint = b""
    while length >= 0x80:
        varint += bytes([length & 0x7F | 0x80])
        length >>= 7
    varint += bytes([length])
    with pytest.raises(LimitExceeded):
        unpack(SNAPPY, varint + b"\0" * 10)
    with pytest.raises(LimitExceeded):
        unpack(SNAPPY, bytes(compress(SNAPPY, b"")) + struct.pack(">i", len(varint) + 10) + varint + b"\0" * 10)


@pytest.mark.parametrize("tail", [b"\0", b"ab", b"\xff\xff\xff"])
def test_snappy_xerial_data_ends_before_a_length_that_is_cut(tail):
    """As org.xerial.snappy.SnappyInputStream takes it; Kafka 4.3.1 appends such a batch."""
    assert unpack(SNAPPY, bytes(compress(SNAPPY, b"hello")) + tail) == b"hello"
    assert unpack(SNAPPY, bytes(compress(SNAPPY, b"")) + tail) == b""


@pytest.mark.parametrize("tail", [struct.pack(">i", 5), struct.pack(">i", -1) + b"x", bytes(4)])
def test_snappy_xerial_blocks_that_are_cut(tail):
    with pytest.raises(DecompressError):
        unpack(SNAPPY, bytes(compress(SNAPPY, b"hello")) + tail)


# ---- lz4 ----


def lz4_block(plain):
    return bytes(cramjam.lz4.compress_block(plain, store_size=False))


def lz4_frame(*blocks, flags=0x60, size=0x40, descriptor=b"", tail=b"\0\0\0\0"):
    """A frame around (length field, bytes) pairs, its header check taken from the library under test's own header."""
    head = bytes([flags, size]) + descriptor
    body = b"".join(struct.pack("<I", length) + data for length, data in blocks)
    return b"\x04\x22\x4d\x18" + head + bytes([xxh32(head) >> 8 & 0xFF]) + body + tail


def xxh32(data):
    """xxHash-32 with seed 0 of fewer than 16 bytes."""
    prime = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
    mask = 0xFFFFFFFF

    def rotate(value, bits):
        return (value << bits | value >> 32 - bits) & mask

    h = prime[4] + len(data) & mask
    while len(data) >= 4:
        h = rotate(h + int.from_bytes(data[:4], "little") * prime[2] & mask, 17) * prime[3] & mask
        data = data[4:]
    for byte in data:
        h = rotate(h + byte * prime[4] & mask, 11) * prime[0] & mask
    h = (h ^ h >> 15) * prime[1] & mask
    h = (h ^ h >> 13) * prime[2] & mask
    return h ^ h >> 16


def test_lz4_frame_as_java_writes_it():
    packed = bytes(compress(LZ4, b"hello"))
    # magic, version 1 with independent blocks, blocks of 64 KB, header check; a stored block; the end
    assert packed == bytes.fromhex("04224d186040820500008068656c6c6f00000000")


def test_lz4_is_read_by_another_reader():
    for plain in (b"x", TEXT, NOISE):
        assert bytes(cramjam.lz4.decompress(bytes(compress(LZ4, plain)))) == plain


def test_lz4_with_content_size_and_checksums_as_other_clients_write():
    block = lz4_block(TEXT[:1000])
    size = struct.pack("<Q", 1000)
    assert unpack(LZ4, lz4_frame((len(block), block), flags=0x68, descriptor=size)) == TEXT[:1000]
    assert unpack(LZ4, lz4_frame((len(block), block), flags=0x64, tail=b"\0\0\0\0abcd")) == TEXT[:1000]
    assert unpack(LZ4, lz4_frame((len(block), block + b"sums"), flags=0x70)) == TEXT[:1000]


def test_lz4_blocks_of_4_megabytes():
    block = lz4_block(TEXT)
    assert unpack(LZ4, lz4_frame((len(block), block), size=0x70)) == TEXT


@pytest.mark.parametrize(
    "frame",
    [
        lz4_frame(flags=0x40),  # blocks depend on each other
        lz4_frame(flags=0x61, descriptor=b"dict"),
        lz4_frame(flags=0xA0),
        lz4_frame(size=0x30),
        lz4_frame(size=0xC0),
        lz4_frame((70000, b"x" * 70000)),  # larger than the frame's blocks
        lz4_frame((5, b"xx"), tail=b""),
        lz4_frame((5, b"\xff" * 5)),
        lz4_frame((3, b"abc"), tail=b""),
        lz4_frame(flags=0x70, tail=struct.pack("<I", 0x80000001) + b"x"),
        lz4_frame()[:-1],
        lz4_frame()[:6],
        lz4_frame(flags=0x68, descriptor=bytes(8))[:10],
        b"\x05" + lz4_frame()[1:],
        lz4_frame()[:6] + b"\xff" + lz4_frame()[7:],
    ],
)
def test_lz4_frames_that_kafka_refuses(frame):
    with pytest.raises(DecompressError):
        unpack(LZ4, frame)


# ---- zstd ----


def test_zstd_without_content_size_as_streams_write_it():
    stream = cramjam.zstd.Compressor(3)
    packed = b""
    for start in range(0, len(TEXT), 10_000):
        stream.compress(TEXT[start : start + 10_000])
        packed += bytes(stream.flush())
    packed += bytes(stream.finish())
    assert unpack(ZSTD, packed, len(TEXT)) == TEXT
    with pytest.raises(LimitExceeded):
        unpack(ZSTD, packed, len(TEXT) - 1)


def test_zstd_frames_follow_each_other_and_some_are_skipped():
    skipped = struct.pack("<II", 0x184D2A57, 3) + b"abc"
    packed = skipped + bytes(compress(ZSTD, b"one ")) + skipped + bytes(compress(ZSTD, b"two"))
    assert unpack(ZSTD, packed) == b"one two"
    assert unpack(ZSTD, b"") == b""


def test_zstd_run_length_bomb_costs_nothing():
    # One frame without content size, whose blocks each repeat a byte 128 Ki times: 4 bytes become 131,072.
    block = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b"a"
    bomb = b"\x28\xb5\x2f\xfd\x00\x58" + block * 10_000 + b"\x01\0\0"
    with pytest.raises(LimitExceeded):
        unpack(ZSTD, bomb, 1 << 20)


def test_zstd_content_size_that_lies_takes_no_memory():
    liar = b"\x28\xb5\x2f\xfd\xc0\x58" + struct.pack("<Q", 2**63) + struct.pack("<I", 3 << 3 | 1)[:3] + b"abc"
    with pytest.raises(DecompressError):
        unpack(ZSTD, liar)


@pytest.mark.parametrize(
    "data",
    [
        b"\x28\xb5\x2f\xfd",
        b"\x28\xb5\x2f\xfd\x00\x58",
        b"\x28\xb5\x2f\xfd\xc0\x58\0\0",
        b"\x28\xb5\x2f\xfd\x00\x58\x07\0\0",
        b"\x28\xb5\x2f\xfd\x00\x58\x11\0\0",
        b"notazstdframe",
        bytes(compress(ZSTD, b"x")) + b"tail",
    ],
)
def test_zstd_frames_that_are_broken(data):
    with pytest.raises(DecompressError):
        unpack(ZSTD, data)


def test_libraries_are_not_imported_before_they_are_needed():
    import subprocess

    code = "import sys, kafka_shim.cext.records; print('cramjam' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


# --- the expected size


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", SAMPLES)
def test_expected_size_is_no_less_than_the_true_one(codec, name):
    plain = SAMPLES[name]
    data = bytes(compress(codec, plain))
    with exact(data) as buffer:
        expected = expected_bytes(codec, buffer)
    assert expected >= len(plain)
    # Of gzip a ratio is taken, of the others the blocks are known.
    assert expected <= (max(len(plain), 8 * len(data)) if codec == GZIP else max(len(plain), 0) + (128 << 10))


@given(st.sampled_from([-1, 0, *CODECS, 5, 7]), st.binary(max_size=200))
def test_expected_size_of_anything(codec, data):
    with exact(data) as buffer:
        assert 0 <= expected_bytes(codec, buffer) <= 1 << 40


@pytest.mark.parametrize("codec", (SNAPPY, LZ4, ZSTD))
def test_expected_size_of_what_is_cut_off(codec):
    assert expected_bytes(codec, bytes(compress(codec, TEXT))[:-30]) == 0


def test_expected_size_of_gzip_that_lies():
    data = gzip.compress(bytes(1_000_000))
    assert expected_bytes(GZIP, data) == 1_000_000
    assert expected_bytes(GZIP, data[:-4] + bytes(4)) == 8 * len(data)
    assert expected_bytes(GZIP, data[:-4] + b"\xff" * 4) == 1032 * len(data)


def test_less_than_a_length_promises_nothing() -> None:
    assert expected_bytes(1, b"abc") == 0


@pytest.mark.parametrize("rest", [b"\x1f", b"\x1f\x00", b"\x00\x8b", b"\x1f\x00 not a member"])
def test_what_follows_a_gzip_member_and_is_none_is_ignored(rest: bytes) -> None:
    """As java.util.zip.GZIPInputStream does."""
    assert bytes(decompress(1, gzip.compress(b"data") + rest)) == b"data"


@contextlib.contextmanager
def by(library):
    before = use_system_zstd(library == "system")
    try:
        yield
    finally:
        use_system_zstd(before)


def zstd_stream(plain):
    """A frame without content size, of more than one block, as a stream's compressor writes it."""
    stream = cramjam.zstd.Compressor()
    stream.compress(plain)
    return bytes(stream.finish())


def unzstd(data, limit_bytes=1 << 20):
    """What each library makes of the data; a refusal is its type, as the texts are the library's."""
    found = []
    for library in ("system", "cramjam"):
        with by(library):
            try:
                found.append(unpack(ZSTD, data, limit_bytes))
            except DecompressError as error:
                found.append(type(error))
    return found


SKIPPABLE = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
STREAM = zstd_stream(TEXT)
IN_BLOCK = 9  # behind the headers of the smallest frame and its first block


@pytest.mark.parametrize("limit_bytes", [1 << 20, len(TEXT), len(TEXT) - 1, 1000, 0])
def test_both_zstd_libraries_give_the_same(limit_bytes):
    packed = bytes(compress(ZSTD, TEXT))
    twice = packed + SKIPPABLE + bytes(compress(ZSTD, b"more"))
    for data in (packed, STREAM, twice, STREAM + STREAM, SKIPPABLE + packed, packed + SKIPPABLE, packed + b"\0" * 9):
        system, cramjam_ = unzstd(data, limit_bytes)
        assert system == cramjam_
    assert unzstd(packed, len(TEXT)) == [TEXT, TEXT]
    assert unzstd(twice) == [TEXT + b"more"] * 2


def test_both_zstd_libraries_refuse_the_same():
    """Whatever the framing shows. What changed inside of a block without a checksum, one version of the library notices
    and another takes for other content."""
    chance = random.Random(5)
    wrong = 0
    for data in (bytes(compress(ZSTD, TEXT[:20_000])), zstd_stream(TEXT[:20_000])):
        for at in [*range(24), *(chance.randrange(len(data)) for _ in range(600))]:
            bent = bytearray(data)
            bent[at] ^= 1 << chance.randrange(8)
            system, cramjam_ = unzstd(bent)
            assert at >= IN_BLOCK or system == cramjam_, (at, bent[at])
            wrong += isinstance(system, type)
        for size in range(0, len(data), 7):
            system, cramjam_ = unzstd(data[:size])
            assert system == cramjam_, size
    assert wrong > 100


@pytest.mark.parametrize("window_log", range(10, 42))
def test_a_window_that_a_stream_may_not_have_is_refused_at_once_too(window_log):
    """Windows of a frame without content size, which one-shot functions never need."""
    plain = b"some text"
    frame = bytes([0x28, 0xB5, 0x2F, 0xFD, 0, (window_log - 10) << 3]) + (len(plain) << 3 | 1).to_bytes(3, "little")
    system, cramjam_ = unzstd(frame + plain)
    assert system == cramjam_
    assert (system == plain) == (window_log <= 27)


def test_threads_decompress_zstd_side_by_side():
    packed = {size: bytes(compress(ZSTD, TEXT[:size] * 3)) for size in (1000, 100_000, len(TEXT))}

    def work(size):
        return all(bytes(decompress(ZSTD, packed[size])) == TEXT[:size] * 3 for _ in range(100))

    with by("system"), ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, [*packed, *packed]))


def zstd_frame(window_log, *blocks, content_size=None):
    """A frame of blocks of (type, length, body)."""
    frame = bytearray([0x28, 0xB5, 0x2F, 0xFD, 0, (window_log - 10) << 3])
    if content_size is not None:
        frame[4] = 2 << 6
        frame += content_size.to_bytes(4, "little")
    for at, (kind, length, body) in enumerate(blocks, 1):
        frame += (length << 3 | kind << 1 | (at == len(blocks))).to_bytes(3, "little") + body
    return bytes(frame)


RAW, RLE, COMPRESSED = range(3)


@pytest.mark.parametrize("kind", [RAW, RLE])
@pytest.mark.parametrize(("window_log", "most"), [(10, 1 << 10), (17, 1 << 17), (21, 1 << 17)])
def test_a_block_that_a_stream_refuses_is_refused_at_once_too(window_log, most, kind):
    """A block has at most its window and 128 KB. One-shot functions take more, of which Kafka's consumers read none."""
    for size in (most - 1, most, most + 1):
        frame = zstd_frame(window_log, (kind, size, b"x" * size if kind == RAW else b"x"))
        assert unzstd(frame) == [DecompressError if size > most else b"x" * size] * 2


def test_a_compressed_block_that_is_too_large_is_refused_at_once_too():
    """Its header does not say what it decompresses to: only the blocks beside it leave room for it."""
    packed = bytes(compress(ZSTD, b"x" * 3000))
    at = 4 + 1 + 2  # magic, descriptor, content size
    length = int.from_bytes(packed[at : at + 3], "little") >> 3
    block = (COMPRESSED, length, packed[at + 3 :][:length])
    assert unzstd(zstd_frame(12, block)) == [b"x" * 3000] * 2
    assert unzstd(zstd_frame(10, block)) == [DecompressError] * 2


@pytest.mark.parametrize("content_size", [999, 1000, 1001])
def test_a_false_content_size_is_refused_at_once_too_where_the_last_block_is_empty(content_size):
    for last in ([], [(RAW, 0, b"")]):
        frame = zstd_frame(17, (RAW, 1000, b"x" * 1000), *last, content_size=content_size)
        assert unzstd(frame) == [b"x" * 1000 if content_size == 1000 else DecompressError] * 2

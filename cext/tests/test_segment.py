import errno
import os
import resource
import signal
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.batch import Verdict, scan, stamp
from kafka_shim.cext.records import build
from kafka_shim.cext.segment import IndexBase, SegmentBase, Walk, append, find_batch, lookup_offset, lookup_time, read
from kafka_shim.cext.tests.exact import exact


@pytest.fixture
def log(tmp_path):
    """A log of 300 batches from 69 bytes to 60 KB: (descriptor, bytes, batches as [(position, base, last, size)])."""
    fd = os.open(tmp_path / "0.log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    facts, parts = [], []
    position = offset = 0
    for i in range(300):
        count = i % 5 + 1
        batch = build([(None, bytes(i * 40), 7, ())] * count)
        stamp(batch, 0, offset, 3)
        facts.append((position, offset, offset + count - 1, len(batch)))
        parts.append(batch)
        position += len(batch)
        offset += count
    assert append(fd, parts) == position
    yield fd, b"".join(parts), facts
    os.close(fd)


def corrupt(fd, position, data):
    # Not through the fixture's descriptor: with O_APPEND Linux would write at the end.
    with open(f"/proc/self/fd/{fd}", "r+b") as file:  # noqa: PTH123
        file.seek(position)
        file.write(data)


# ---- append ----


def test_append_goes_to_the_end_and_skips_empty_buffers(tmp_path):
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    assert append(fd, []) == 0
    assert append(fd, [b"", bytearray(b"abc"), memoryview(b"xdef")[1:], b""]) == 6
    assert append(fd, [b"g"]) == 1
    assert read(fd, 0, 100) == b"abcdefg"
    os.close(fd)


def test_append_of_more_buffers_than_one_system_call_takes(tmp_path):
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    parts = [b"%d," % i for i in range(3000)]
    assert append(fd, parts) == len(b"".join(parts))
    assert read(fd, 0, 1 << 20) == b"".join(parts)
    os.close(fd)


def test_append_goes_on_after_short_writes_and_signals():
    """A pipe takes what it has room for; a signal without restart interrupts the wait for more."""
    reader, writer = os.pipe()
    parts = [bytes([i]) * 50_000 for i in range(20)]
    received = bytearray()

    def drain():
        while len(received) < 1_000_000:
            signal.pthread_kill(main, signal.SIGUSR1)
            received.extend(os.read(reader, 7777))

    main = threading.main_thread().ident
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.siginterrupt(signal.SIGUSR1, True)
    thread = threading.Thread(target=drain)
    thread.start()
    try:
        assert append(writer, parts) == 1_000_000
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
        os.close(reader)
        os.close(writer)
    assert received == b"".join(parts)


def test_append_tells_the_systems_error(tmp_path):
    with pytest.raises(OSError) as caught:
        append(-1, [b"x"])
    assert caught.value.errno == errno.EBADF
    with pytest.raises(TypeError):
        append(0, ["text"])


def test_append_beyond_a_limit_fails_with_part_of_it_written(tmp_path):
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError) as caught:
            append(fd, [bytes(60_000), bytes(60_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.errno == errno.EFBIG
    assert os.fstat(fd).st_size == 100_000
    os.close(fd)


# ---- read ----


def test_read_any_range_and_less_at_the_end(log):
    fd, data, _ = log
    assert read(fd, 0, len(data)) == data
    assert read(fd, 1000, 70_000) == data[1000:71_000]
    assert read(fd, len(data) - 5, 100) == data[-5:]
    assert read(fd, len(data) + 5, 100) == b""
    assert read(fd, 0, 0) == b""


def test_read_refuses_nonsense(log):
    with pytest.raises(ValueError, match="negative"):
        read(log[0], -1, 1)
    with pytest.raises(ValueError, match="negative"):
        read(log[0], 0, -1)
    with pytest.raises(OSError):
        read(-1, 0, 1)


def test_find_batch_by_every_offset(log):
    fd, data, facts = log
    for position, base, last, size in facts:
        for offset in range(base, last + 1):
            assert find_batch(fd, 0, len(data), offset) == (position, size, base, last)
            assert find_batch(fd, position, len(data), offset) == (position, size, base, last)


def test_find_batch_takes_the_first_after_a_gap_and_nothing_beyond_the_end(log):
    fd, data, facts = log
    assert find_batch(fd, facts[5][0], len(data), 0)[2] == facts[5][1]
    assert find_batch(fd, 0, len(data), facts[-1][2] + 1) is None
    assert find_batch(fd, 0, facts[7][0], facts[7][1]) is None
    assert find_batch(fd, 0, facts[7][0] + 70, facts[7][1]) is None
    assert find_batch(fd, len(data), len(data), 0) is None


def test_find_batch_stops_at_what_is_no_batch(log):
    fd, data, facts = log
    assert find_batch(fd, 1, len(data), 0) is None
    corrupt(fd, facts[4][0] + 8, b"\0\0\0\0")
    assert find_batch(fd, 0, len(data), facts[5][1]) is None
    assert find_batch(fd, 0, len(data) + 1000, 10**9) is None
    assert find_batch(fd, len(data) + 10, len(data) + 1000, 0) is None, "the file ends before"
    with pytest.raises(OSError):
        find_batch(-1, 0, 100, 0)
    with pytest.raises(ValueError, match="negative"):
        find_batch(fd, -1, 100, 0)


@given(st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=50), st.integers(-5, 2**31 + 5), st.integers(0, 7))
def test_lookup_offset_finds_the_last_entry_at_or_below(offsets, target, rest):
    entries = [(offset, offset // 2) for offset in sorted(offsets)]
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)
    expected = max([entry for entry in entries if entry[0] <= target], default=(0, 0))
    with exact(data + bytes(rest)) as buffer:
        assert lookup_offset(buffer, len(data) + rest, target) == expected


@given(st.lists(st.integers(-1, 2**62), max_size=50), st.integers(-5, 2**62 + 5), st.integers(0, 11))
def test_lookup_time_finds_the_last_entry_at_or_before(times, target, rest):
    entries = [(time, i) for i, time in enumerate(sorted(times))]
    data = b"".join(struct.pack(">qi", *entry) for entry in entries)
    expected = max([entry for entry in entries if entry[0] <= target], default=(-1, 0))
    with exact(data + bytes(rest)) as buffer:
        assert lookup_time(buffer, len(data) + rest, target) == expected


def test_lookup_in_less_than_the_buffer_and_not_in_more():
    data = b"".join(struct.pack(">ii", i, i * 10) for i in range(10))
    assert lookup_offset(data, 3 * 8, 100) == (2, 20)
    for lookup in (lookup_offset, lookup_time):
        for size in (-1, len(data) + 1):
            with pytest.raises(ValueError, match="not inside"):
                lookup(data, size, 0)


# ---- walk ----


def facts_of(walk):
    return [(batch.position, batch.base_offset, batch.last_offset, batch.size_bytes) for batch in walk]


def test_walk_gives_every_batch_and_ends_at_the_end(log):
    fd, data, facts = log
    for check_crc in (True, False):
        walk = Walk(fd, 0, len(data), check_crc)
        assert facts_of(walk) == facts
        assert (walk.position, walk.verdict, walk.next_offset) == (len(data), Verdict.OK, facts[-1][2] + 1)
        assert list(walk) == []


def test_walk_from_the_middle(log):
    fd, data, facts = log
    walk = Walk(fd, facts[100][0], len(data), next_offset=facts[100][1])
    assert facts_of(walk) == facts[100:]


def test_walk_over_a_batch_larger_than_its_window(tmp_path):
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    large = build([(None, os.urandom(1_000_000), 0, ())])
    small = build([(None, b"x", 0, ())], base_offset=1)
    size = append(fd, [large, small])
    walk = Walk(fd, 0, size)
    assert [batch.base_offset for batch in walk] == [0, 1]
    assert walk.verdict == Verdict.OK
    corrupt(fd, 900_000, b"\0\1")
    walk = Walk(fd, 0, size)
    assert list(walk) == []
    assert (walk.position, walk.verdict) == (0, Verdict.BAD_CRC)
    os.close(fd)


def test_walk_stops_before_a_torn_tail_of_any_length(log):
    fd, _data, facts = log
    position, _, _, size = facts[-1]
    for torn in (1, 16, 17, 60, 61, 62, 5000, size - 1):
        walk = Walk(fd, facts[-3][0], position + torn)
        assert facts_of(walk) == facts[-3:-1]
        assert walk.position == position
        assert walk.verdict == (Verdict.SHORT if torn < 17 else Verdict.TRUNCATED)


def test_walk_over_a_file_shorter_than_it_was_told(log):
    fd, data, facts = log
    os.ftruncate(fd, facts[-1][0] + 200)
    walk = Walk(fd, 0, len(data))
    assert facts_of(walk) == facts[:-1]
    assert (walk.position, walk.verdict) == (facts[-1][0], Verdict.TRUNCATED)
    os.ftruncate(fd, facts[-1][0] + 20)
    walk = Walk(fd, 0, len(data))
    assert facts_of(walk) == facts[:-1]
    assert walk.verdict == Verdict.TRUNCATED


@pytest.mark.parametrize(
    ("at", "data", "verdict"),
    [
        (61, b"\xff", Verdict.BAD_CRC),
        (17, b"\0\0\0\0", Verdict.BAD_CRC),
        (8, b"\xff\xff\xff\xff", Verdict.BAD_LENGTH),
        (8, b"\0\0\0\0", Verdict.BAD_LENGTH),
        (8, b"\x7f\xff\xff\xff", Verdict.TRUNCATED),
        (16, b"\1", Verdict.BAD_MAGIC),
        (16, b"\x09", Verdict.UNKNOWN_MAGIC),
        (0, bytes(8), Verdict.OUT_OF_ORDER),
        (0, b"\xff" * 8, Verdict.OUT_OF_ORDER),
    ],
)
def test_walk_stops_at_the_first_bad_batch(log, at, data, verdict):
    fd, content, facts = log
    corrupt(fd, facts[150][0] + at, data)
    walk = Walk(fd, 0, len(content))
    assert facts_of(walk) == facts[:150]
    assert (walk.position, walk.verdict, walk.next_offset) == (facts[150][0], verdict, facts[150][1])


def test_walk_over_zeros_that_a_crash_left(log):
    fd, data, facts = log
    os.ftruncate(fd, len(data) + 10_000)
    walk = Walk(fd, 0, len(data) + 10_000)
    assert facts_of(walk) == facts
    assert (walk.position, walk.verdict) == (len(data), Verdict.BAD_LENGTH)


def test_walk_refuses_nonsense(log):
    for start, end in ((-1, 5), (5, 4)):
        with pytest.raises(ValueError, match="no file range"):
            Walk(log[0], start, end)
    with pytest.raises(OSError):
        list(Walk(-1, 0, 100))


def test_scan_of_what_was_read_agrees_with_the_walk(log):
    fd, _data, facts = log
    position, base, last, size = facts[-1]
    batch = scan(read(fd, position, size))
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (base, last, 3)


# --- the end of a segment


CONFIG = object()


class End(SegmentBase):
    """An open segment from offset 100: 500 bytes, of which 60 are not indexed. Its first batch has the time 1,000."""

    def __init__(self, **changes):
        self.cut_to, self.indexed = [], []
        facts = {
            "base_offset": 100,
            "size_bytes": 500,
            "bytes_since_index": 60,
            "first_timestamp_ms": 1000,
            "max_timestamp_ms": 2000,
            "max_timestamp_offset": 103,
            "_fd": 7,
            "_limits_of": CONFIG,
            "_most_bytes": 580,
            "_interval_bytes": 60,
            "_longest_wait_ms": 2000,
        }
        for name, value in (facts | changes).items():
            setattr(self, name, value)

    def _cut_back(self, position):
        self.cut_to.append(position)

    def _set_limits(self, config):
        self._limits_of, self._most_bytes = config, 1000

    def _load_indexes(self):
        self.indexed.append("loaded")

    def _index(self, last_offset, position):
        self.indexed.append((last_offset, position, self.size_bytes))
        self.bytes_since_index = 0

    def put(self, write, size_bytes=80, last_offset=105, max_timestamp_ms=3000, config=CONFIG):
        return self.append_plain(write, b"batch", size_bytes, last_offset, max_timestamp_ms, config)

    @property
    def facts(self):
        return self.size_bytes, self.bytes_since_index, self.max_timestamp_ms, self.max_timestamp_offset


def test_a_plain_append_moves_the_end():
    end, written = End(), []
    assert end.put(lambda *what: written.append(what))
    assert written == [(7, (b"batch",))]
    assert end.facts == (580, 140, 3000, 105)
    assert end.indexed == []


def test_an_index_is_loaded_before_the_write_and_gets_its_entry_behind_it():
    end = End(_interval_bytes=59)
    assert end.put(lambda *what: end.indexed.append("written"))
    assert end.indexed == ["loaded", "written", (105, 500, 580)]
    assert end.bytes_since_index == 80


class Index(IndexBase):
    def __init__(self, tail=b"", stored_bytes=0):
        self.tail, self.stored_bytes = bytearray(tail), stored_bytes


def indexed(**changes):
    """A segment with both indexes in memory, where the next batch gets an entry."""
    facts = {"_interval_bytes": 59, "_offset_index": Index(), "_time_index": Index(), "_most_index_bytes": 100}
    return End(**facts | changes)


def test_indexes_in_memory_get_their_entries_without_a_call():
    end = indexed()
    assert end.put(lambda *what: end.indexed.append("written"))
    assert end.indexed == ["written"]
    assert end._offset_index.tail == struct.pack(">ii", 5, 500)
    assert end._time_index.tail == struct.pack(">qi", 3000, 5)
    assert end.bytes_since_index == 80
    assert end.put(lambda *what: None, last_offset=109, max_timestamp_ms=3000, config=object())
    assert end._offset_index.tail == struct.pack(">iiii", 5, 500, 9, 580)
    assert end._time_index.tail == struct.pack(">qi", 3000, 5)


@pytest.mark.parametrize("name", ["_offset_index", "_time_index"])
def test_an_entry_for_which_there_is_no_room_is_none_at_all(name):
    """Nor half of one. A tail of which somebody has a view cannot grow, as one cannot without memory."""
    end = indexed()
    tail = getattr(end, name).tail
    with memoryview(tail), pytest.raises(BufferError):
        end.put(lambda *what: None)
    assert tail == b""
    assert end._offset_index.tail == (b"" if name == "_offset_index" else struct.pack(">ii", 5, 500))


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("_offset_index", None),
        ("_time_index", None),
        ("_time_index", Index(stored_bytes=12)),  # its last time is in the file alone
        ("_offset_index", Index(bytes((16 << 10) - 8))),  # the entry makes a chunk, which is written
        ("_time_index", Index(bytes((16 << 10) - 12))),
    ],
)
def test_what_else_an_index_asks_is_for_the_segment(name, index):
    before = None if index is None else bytes(index.tail)
    end = indexed(**{name: index})
    assert end.put(lambda *what: end.indexed.append("written"))
    assert end.indexed == ["loaded", "written", (105, 500, 580)]
    assert index is None or index.tail == before


@pytest.mark.parametrize(
    ("offsets", "times", "is_full"),
    [
        (Index(bytes(80)), Index(bytes(60)), False),  # 11 of 12 entries, 6 of 7
        (Index(bytes(88)), Index(), True),
        (Index(stored_bytes=88), Index(), True),
        (Index(), Index(bytes(72)), True),
        (Index(), Index(bytes(48), stored_bytes=24), True),
    ],
)
def test_an_index_is_full_with_its_last_entry(offsets, times, is_full):
    end = indexed(_most_index_bytes=100, _offset_index=offsets, _time_index=times)
    assert end.put(lambda *what: None)
    assert end._is_index_full == is_full


def test_a_file_that_the_load_of_an_index_closed_is_left_to_the_caller():
    class Closing(End):
        def _load_indexes(self):
            self._fd = -1

    end = Closing(_interval_bytes=59)
    assert not end.put(lambda *what: pytest.fail("written"))


def test_limits_are_those_of_the_configuration():
    end, other = End(_most_bytes=579), object()
    assert not end.put(lambda *what: pytest.fail("written"))
    assert end.put(lambda *what: None, config=other)
    assert end._limits_of is other


def test_an_older_batch_keeps_the_greatest_time():
    end = End()
    assert end.put(lambda *what: None, max_timestamp_ms=1500)
    assert end.facts == (580, 140, 2000, 103)


@pytest.mark.parametrize(
    "changes",
    [
        {"_is_index_full": True},
        {"_fd": -1},
        {"size_bytes": 0},
        {"_most_bytes": 579},
        {"base_offset": 104 - 0x7FFFFFFF},
        {"first_timestamp_ms": None},
        {"max_timestamp_ms": None},
        {"first_timestamp_ms": -1},
        {"_longest_wait_ms": 1999},
    ],
)
def test_what_is_not_plain_is_left_to_the_caller(changes):
    end = End(**changes)
    before = end.facts
    assert not end.put(lambda *what: pytest.fail("written"))
    assert end.facts == before


def test_a_failed_write_is_cut_back_and_not_counted():
    def fail(fd, buffers):
        raise OSError(28, "full")

    end = End()
    before = end.facts
    with pytest.raises(OSError, match="full"):
        end.put(fail)
    assert (end.cut_to, end.facts) == ([500], before)

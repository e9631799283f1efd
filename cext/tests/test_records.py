import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.batch import BatchError, Verdict, scan, scan_all
from kafka_shim.cext.records import build, find_timestamp, iterate, scan_plain, validate
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
FIELD = st.none() | st.binary(max_size=40)
PAIRS = st.lists(st.tuples(st.binary(max_size=10), FIELD), max_size=4).map(tuple)
LINES = st.lists(st.tuples(INT64, FIELD, FIELD, PAIRS), min_size=1, max_size=30)


def payload_of(lines):
    return b"".join(oracle.write_record(i, *line) for i, line in enumerate(lines))


def flat(record):
    headers = tuple((key.encode("utf-8", "surrogateescape"), value) for key, value in record.headers)
    return record.offset, record.timestamp, record.key, record.value, headers


def verdict_of(data):
    """(verdict, record index) that `validate` gives."""
    with exact(data) as buffer:
        try:
            validate(buffer, scan(buffer))
        except BatchError as error:
            return error.verdict, error.record_index
    return Verdict.OK, -1


@given(LINES, INT64, INT64, st.booleans())
def test_iterate_gives_what_the_oracle_reads(lines, base_offset, base_timestamp, log_append_time):
    payload = payload_of(lines)
    data = oracle.write_batch(
        payload,
        len(lines),
        base_offset=base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=77,
        attributes=8 if log_append_time else 0,
    )
    with exact(data) as buffer:
        records = [flat(record) for record in iterate(buffer, check_crc=True)]
    assert records == oracle.read_records(payload, oracle.scan(data), consecutive=True)


@given(LINES, INT64)
def test_validate_sums_up_what_the_oracle_reads(lines, base_timestamp):
    payload = payload_of(lines)
    data = oracle.write_batch(payload, len(lines), base_offset=100, base_timestamp=base_timestamp)
    with exact(data) as buffer:
        summary = validate(buffer, scan(buffer))
    records = oracle.read_records(payload, oracle.scan(data))
    times = [record[1] for record in records]
    known = [time for time in times if time != -1]
    nulls = [i for i, record in enumerate(records) if record[2] is None]
    assert summary.record_count == len(lines)
    assert summary.max_timestamp == max(-1, *times)
    assert summary.min_timestamp == min(known, default=-1)
    assert summary.offset_of_max_timestamp == (100 + times.index(max(times)) if max(times) > -1 else -1)
    assert summary.null_key_count == len(nulls)
    assert summary.first_null_key == (nulls[0] if nulls else -1)
    assert summary.uncompressed_bytes == len(payload)


def test_summary_of_log_append_time_is_the_batchs_time():
    data = build([(b"k", b"v", i, ()) for i in range(3)], base_offset=5, timestamp_type=1, append_time_ms=42)
    summary = validate(data, scan(data))
    assert (summary.max_timestamp, summary.min_timestamp, summary.offset_of_max_timestamp) == (42, 42, 5)
    assert "max_timestamp=42" in repr(summary)


TIMES = (5, 9, 7)
PLAIN = {"base_timestamp": 0, "max_timestamp": 9, "producer_id": 4, "base_sequence": 0}
THREE = b"".join(oracle.write_record(index, time, b"k", b"v") for index, time in enumerate(TIMES))


def plain(data, limit_bytes=1000, needs_keys=True, now_ms=8, before_limit_ms=3, after_limit_ms=1):
    with exact(data) as buffer:
        return scan_plain(buffer, limit_bytes, needs_keys, now_ms, before_limit_ms, after_limit_ms)


@pytest.mark.parametrize("attributes", [0, 0x10])
def test_a_plain_batch_is_told_by_its_header(attributes):
    data = oracle.write_batch(THREE, 3, attributes=attributes, **PLAIN)
    found = plain(data, limit_bytes=len(data))
    assert repr(found) == repr(scan(data))
    assert found.max_timestamp == validate(data, found).max_timestamp == 9


@pytest.mark.parametrize(
    "data",
    [
        b"",
        oracle.write_batch(THREE, 3, **PLAIN)[:-1],
        oracle.write_batch(THREE, 3, **PLAIN) + b"\0",
        oracle.write_batch(THREE, 3, **PLAIN)[:-1] + b"\1",  # a header count, and the CRC is another
        oracle.write_batch(THREE[:-1] + b"\2", 3, **PLAIN),
        oracle.write_batch(THREE, 2, **PLAIN),
        oracle.write_batch(THREE, 3, last_offset_delta=3, **PLAIN),
        oracle.write_batch(b"", 0, last_offset_delta=0, **PLAIN),
        oracle.write_batch(THREE, 3, base_offset=1, **PLAIN),
        *(oracle.write_batch(THREE, 3, attributes=bits, **PLAIN) for bits in (1, 8, 0x20)),
        oracle.write_batch(THREE, 3, **PLAIN | {"base_sequence": -1}),
        oracle.write_batch(THREE, 3, **PLAIN | {"max_timestamp": 8}),
        oracle.write_batch(THREE, 3, **PLAIN | {"base_timestamp": -7, "max_timestamp": 2}),
        oracle.write_batch(oracle.write_record(0, 9, None, b"v"), 1, **PLAIN),
        oracle.write_batch(THREE, 3, magic=1, **PLAIN),
    ],
)
def test_no_other_batch_is_plain(data):
    assert plain(data) is None


def test_a_plain_batch_keeps_the_limits_of_its_topic():
    data = oracle.write_batch(THREE, 3, **PLAIN)
    assert plain(data, limit_bytes=len(data) - 1) is None
    assert plain(data, before_limit_ms=2) is None
    assert plain(data, after_limit_ms=0) is None
    without_key = oracle.write_batch(oracle.write_record(0, 9, None, b"v"), 1, **PLAIN)
    assert plain(without_key, needs_keys=False) is not None


def test_a_large_batch_is_left_to_those_that_release_the_gil():
    record = oracle.write_record(0, 9, b"k", bytes(1 << 20))
    assert plain(oracle.write_batch(record, 1, **PLAIN), limit_bytes=1 << 30) is None


def one(record, count=1):
    return oracle.write_batch(record, count)


GOOD = oracle.write_record(0, 0, b"k", b"v")
SECOND = oracle.write_record(1, 0, b"k", b"v")
HEADED = oracle.write_record(0, 0, b"k", b"v", ((b"h", b"x"),))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (one(GOOD), (Verdict.OK, -1)),
        (one(b""), (Verdict.BAD_COUNT, 0)),
        (one(GOOD, 2), (Verdict.BAD_COUNT, 1)),
        (one(GOOD + SECOND), (Verdict.TRAILING_BYTES, -1)),
        (one(GOOD + b"\0"), (Verdict.TRAILING_BYTES, -1)),
        (one(b"\x80"), (Verdict.BAD_VARINT, 0)),
        (one(b"\x80" * 5 + b"\1"), (Verdict.BAD_VARINT, 0)),
        (one(b"\1"), (Verdict.BAD_RECORD_LENGTH, 0)),  # -1
        (one(b"\0"), (Verdict.BAD_RECORD_LENGTH, 0)),
        (one(oracle.varint(2**31 - 1) + GOOD[1:]), (Verdict.BAD_RECORD_LENGTH, 0)),
        (one(oracle.varint(-(2**31)) + GOOD[1:]), (Verdict.BAD_RECORD_LENGTH, 0)),
        (one(oracle.varint(len(GOOD)) + GOOD[1:]), (Verdict.BAD_RECORD_LENGTH, 0)),
        (one(oracle.varint(len(GOOD)) + GOOD[1:] + b"\0"), (Verdict.BAD_RECORD_LENGTH, 0)),
        (one(oracle.varint(1) + b"\0"), (Verdict.BAD_VARINT, 0)),  # only attributes
        (one(GOOD[:4] + oracle.varint(2**31 - 1) + GOOD[5:]), (Verdict.BAD_FIELD_LENGTH, 0)),
        (one(GOOD[:4] + oracle.varint(60) + GOOD[5:]), (Verdict.BAD_FIELD_LENGTH, 0)),
        (one(HEADED[:8] + oracle.varint(-1) + HEADED[9:]), (Verdict.BAD_HEADERS, 0)),
        (one(HEADED[:8] + oracle.varint(3) + HEADED[9:]), (Verdict.BAD_HEADERS, 0)),
        (one(HEADED[:9] + oracle.varint(-1) + HEADED[10:]), (Verdict.BAD_HEADERS, 0)),  # null header key
        (one(HEADED[:9] + oracle.varint(9) + HEADED[10:]), (Verdict.BAD_HEADERS, 0)),
        (one(SECOND), (Verdict.BAD_OFFSET_DELTA, 0)),
        (one(GOOD + GOOD, 2), (Verdict.BAD_OFFSET_DELTA, 1)),
        (one(oracle.write_record(-1, 0, b"k", b"v")), (Verdict.BAD_OFFSET_DELTA, 0)),
        (oracle.write_batch(b"", 0, last_offset_delta=0), (Verdict.BAD_COUNT, -1)),
        (oracle.write_batch(GOOD, 1, last_offset_delta=1), (Verdict.BAD_COUNT, -1)),
    ],
)
def test_validate_refuses_every_lie(data, expected):
    assert verdict_of(data) == expected


def test_a_header_count_beyond_the_record_costs_no_loop():
    body = b"\0\0\0\1\1" + oracle.varint(2**31 - 1)
    assert verdict_of(one(oracle.varint(len(body)) + body)) == (Verdict.BAD_HEADERS, 0)


def test_negative_key_and_value_lengths_are_null_as_in_kafka():
    body = b"\0\0\0" + oracle.varint(-7) + oracle.varint(-(2**31)) + b"\0"
    record = next(iterate(one(oracle.varint(len(body)) + body)))
    assert (record.key, record.value) == (None, None)


def test_every_cut_of_the_records_is_refused():
    payload = b"".join(oracle.write_record(i, i, b"key", b"value", ((b"h", None),)) for i in range(3))
    for size in range(len(payload)):
        assert verdict_of(one(payload[:size], 3))[0] != Verdict.OK, size


@pytest.mark.parametrize("size", [None, 0, 1, 63, 64, 8191, 8192])
@pytest.mark.parametrize("time", [0, 63, 64, -64, -65, 8191, 8192, -8192, -8193])
def test_numbers_of_every_length_are_walked_as_they_are_read(size, time):
    """Records whose numbers have two bytes at most are walked in another way."""
    field = None if size is None else bytes(size)
    payload = b"".join(
        oracle.write_record(i, time, key, value)
        for i, (key, value) in enumerate([(field, b"v"), (b"k", field), (field, field), (None, None)])
    )
    data = oracle.write_batch(payload, 4, base_timestamp=10_000)
    with exact(data) as buffer:
        summary = validate(buffer, scan(buffer))
        keys = [record.key for record in iterate(buffer)]
    assert (summary.max_timestamp, summary.min_timestamp) == (10_000 + time, 10_000 + time)
    assert summary.null_key_count == keys.count(None)
    assert summary.first_null_key == keys.index(None)
    ends = range(len(payload)) if len(payload) < 1000 else range(len(payload) - 20, len(payload))
    for end in ends:
        assert verdict_of(one(payload[:end], 4))[0] != Verdict.OK, end


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192])
@pytest.mark.parametrize("shift", [-1, 1])
def test_a_length_that_is_one_off_is_refused_as_where_it_is_read(size, shift):
    def write(key_shift=0, value_shift=0, record_shift=0):
        body = b"\0\0\0" + oracle.varint(size + key_shift) + b"\xff" * size
        body += oracle.varint(size + value_shift) + b"\xff" * size + b"\0"
        return oracle.varint(len(body) + record_shift) + body

    assert verdict_of(one(write()))[0] == Verdict.OK
    for shifts in ({"key_shift": shift}, {"value_shift": shift}, {"record_shift": shift}):
        read, expected = one(write(**shifts)), Verdict.OK
        try:
            list(iterate(read))
        except BatchError as error:
            expected = error.verdict
        # Of no bytes one less is null, which is right.
        assert (expected == Verdict.OK) == (size == 0 and shift < 0 and "record_shift" not in shifts), shifts
        assert verdict_of(read)[0] == expected, shifts


def test_header_keys_of_any_bytes_survive():
    data = one(oracle.write_record(0, 0, None, None, ((b"\xff\xfe", b""), ("ü".encode(), None))))
    (record,) = iterate(data)
    assert record.headers == (("\udcff\udcfe", b""), ("ü", None))
    assert "Record(offset=0" in repr(record)
    again = build([(record.key, record.value, record.timestamp, record.headers)])
    assert [flat(record) for record in iterate(again)] == [flat(record)]


@pytest.mark.parametrize("codec", range(5))
def test_iterate_over_many_batches_of_one_codec(codec):
    data = bytearray()
    for first in range(0, 30, 3):
        data += build([(b"%d" % i, None, i, ()) for i in range(first, first + 3)], base_offset=first, codec=codec)
    assert [int(record.key) for record in iterate(data)] == list(range(30))
    fifth = scan_all(data)[4]
    assert [record.offset for record in iterate(data, fifth.position, fifth.end_position)] == [12, 13, 14]


def test_iterate_skips_empty_batches_that_compaction_left():
    empty = oracle.write_batch(b"", 0, last_offset_delta=9, attributes=1)
    assert [record.key for record in iterate(empty + one(GOOD) + empty)] == [b"k"]


def test_iterate_gives_good_records_before_the_error():
    walk = iterate(oracle.write_batch(GOOD + b"\x80", 2))
    assert next(walk).key == b"k"
    with pytest.raises(BatchError) as caught:
        next(walk)
    assert (caught.value.verdict, caught.value.record_index) == (Verdict.BAD_VARINT, 1)


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (b"short", Verdict.SHORT),
        (one(GOOD)[:-1], Verdict.TRUNCATED),
        (one(GOOD, 2), Verdict.BAD_COUNT),
        (one(GOOD + SECOND), Verdict.TRAILING_BYTES),
        (oracle.write_batch(b"nonsense", 1, attributes=1), Verdict.BAD_COMPRESSED_DATA),
        (oracle.write_batch(GOOD, 1, attributes=7), Verdict.BAD_CODEC),
    ],
)
def test_iterate_refuses_bad_batches(data, verdict):
    with pytest.raises(BatchError) as caught:
        list(iterate(data))
    assert caught.value.verdict == verdict


def test_iterate_checks_the_crc_when_asked():
    data = bytearray(one(GOOD))
    data[17] ^= 1
    assert len(list(iterate(data))) == 1
    with pytest.raises(BatchError, match="CRC"):
        list(iterate(data, check_crc=True))


def test_iterate_holds_its_buffer():
    data = bytearray(one(GOOD + SECOND, 2))
    walk = iterate(data)
    next(walk)
    with pytest.raises(BufferError):
        data.extend(b"x")
    assert len(list(walk)) == 1


def test_ranges_outside_the_buffer_are_the_callers_error():
    for start, end in ((-1, None), (0, 1000), (9, 3)):
        with pytest.raises(ValueError, match="is not inside"):
            iterate(one(GOOD), start, end)


@pytest.mark.parametrize("codec", range(1, 5))
def test_a_bomb_is_refused_at_the_limit(codec):
    data = build([(None, bytes(3 << 20), 0, ())], codec=codec)
    batch = scan(data)
    assert validate(data, batch, 4 << 20).uncompressed_bytes > 3 << 20
    for function in (lambda: validate(data, batch, 3 << 20), lambda: list(iterate(data, limit_bytes=3 << 20))):
        with pytest.raises(BatchError) as caught:
            function()
        assert caught.value.verdict == Verdict.TOO_LARGE


def test_compressed_records_are_checked_like_plain_ones():
    data = oracle.write_batch(gzip.compress(GOOD + GOOD), 2, attributes=1)
    assert verdict_of(data) == (Verdict.BAD_OFFSET_DELTA, 1)
    assert verdict_of(oracle.write_batch(b"\x1f\x8b nonsense", 1, attributes=1))[0] == Verdict.BAD_COMPRESSED_DATA


def test_large_batches_are_walked_without_the_gil_alike():
    records = [(None if i == 9000 else b"k", b"v" * 90, i, ()) for i in range(10000)]
    data = build(records)
    summary = validate(data, scan(data))
    assert (summary.record_count, summary.first_null_key, summary.max_timestamp) == (10000, 9000, 9999)


def test_a_batch_of_another_buffer_is_the_callers_error():
    data = build([(b"k", b"v", 0, ())])
    batch = scan(data)
    for function in (lambda: validate(data[:-1], batch), lambda: find_timestamp(b"", batch, 0)):
        with pytest.raises(ValueError, match="not one of this buffer"):
            function()


@pytest.mark.parametrize("codec", range(5))
def test_find_timestamp_gives_the_first_record_that_is_not_older(codec):
    times = [10, 30, 20, 40, -1]
    data = build([(None, None, time, ()) for time in times], base_offset=100, codec=codec)
    batch = scan(data)
    assert find_timestamp(data, batch, 10) == (100, 10)
    assert find_timestamp(data, batch, 11) == (101, 30)
    assert find_timestamp(data, batch, 20, from_offset=102) == (102, 20)
    assert find_timestamp(data, batch, batch.max_timestamp) == (103, 40)
    assert find_timestamp(data, batch, 41) is None
    assert find_timestamp(data, batch, 0, from_offset=104) is None


def test_find_timestamp_in_log_append_time_and_compacted_batches():
    data = build([(None, None, 0, ()) for _ in range(3)], timestamp_type=1, append_time_ms=50)
    assert find_timestamp(data, scan(data), 50, from_offset=1) == (1, 50)
    compacted = oracle.write_batch(oracle.write_record(4, 7, b"k", b"v"), 1, last_offset_delta=9, base_timestamp=1)
    assert find_timestamp(compacted, scan(compacted), 5) == (4, 8)


def test_find_timestamp_refuses_bad_records():
    for data in (one(GOOD, 2), one(b"\x80")):
        with pytest.raises(BatchError):
            find_timestamp(data, scan(data), 1)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.batch import BatchError, Verdict, scan
from kafka_shim.cext.builder import build, build_marker, parse_marker, recompress
from kafka_shim.cext.records import iterate, validate
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TIME = st.integers(0, 2**62)
FIELD = st.none() | st.binary(max_size=300)
NAME = st.text(max_size=8)
LINES = st.lists(
    st.tuples(FIELD, FIELD, TIME, st.lists(st.tuples(NAME, FIELD), max_size=3).map(tuple)), min_size=1, max_size=20
)
RECORDS = [(b"key%d" % i, b"value" * i, 1000 + i, (("h", b"x"), ("n", None))) for i in range(20)]


@given(LINES, INT64, INT32, INT64, INT16, INT32, st.booleans(), st.booleans())
def test_build_writes_what_the_oracle_writes(
    lines, offset, epoch, pid, producer_epoch, sequence, transactional, control
):
    built = build(
        lines,
        base_offset=offset,
        leader_epoch=epoch,
        producer_id=pid,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
        control=control,
    )
    first = lines[0][2]
    payload = b"".join(
        oracle.write_record(i, time - first, key, value, tuple((name.encode(), data) for name, data in headers))
        for i, (key, value, time, headers) in enumerate(lines)
    )
    assert built == oracle.write_batch(
        payload,
        len(lines),
        base_offset=offset,
        leader_epoch=epoch,
        attributes=16 * transactional | 32 * control,
        base_timestamp=first,
        max_timestamp=max(line[2] for line in lines),
        producer_id=pid,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
    )


@given(LINES, st.integers(0, 4))
def test_what_is_built_reads_back_through_every_codec(lines, codec):
    data = build(lines, codec=codec)
    with exact(data) as buffer:
        assert validate(buffer, scan(buffer)).record_count == len(lines)
        assert [(r.key, r.value, r.timestamp, r.headers) for r in iterate(buffer)] == lines


def test_log_append_time():
    data = build(RECORDS, timestamp_type=1, append_time_ms=9)
    assert {record.timestamp for record in iterate(data)} == {9}
    assert (scan(data).is_log_append_time, scan(data).base_timestamp, scan(data).max_timestamp) == (True, 9, 9)


def test_any_buffer_is_taken_for_keys_values_and_headers():
    data = build([(bytearray(b"k"), memoryview(b"v"), 0, [(b"h", bytearray(b"x"))])])
    (record,) = iterate(data)
    assert (record.key, record.value, record.headers) == (b"k", b"v", (("h", b"x"),))


def test_records_may_come_from_a_generator():
    assert scan(build((None, b"v", i, ()) for i in range(1000))).record_count == 1000


def test_what_cannot_be_built():
    with pytest.raises(ValueError, match="needs a record"):
        build([])
    for codec in (-1, 5):
        with pytest.raises(ValueError, match="no codec"):
            build(RECORDS, codec=codec)
    with pytest.raises(TypeError):
        build([("text", None, 0, ())])
    with pytest.raises(OverflowError):
        build(RECORDS, producer_epoch=1 << 15)


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_has_the_bytes_of_kafka(commit):
    # As Kafka 4.3.1 writes them for transaction versions 0 to 2: 78 bytes, key and value in version 0.
    marker = build_marker(77, 3, 12, commit, 1234, base_offset=9, leader_epoch=2)
    record = oracle.write_record(0, 0, bytes([0, 0, 0, commit]), b"\0\0\0\0\0\x0c")
    assert marker == oracle.write_batch(
        record,
        1,
        base_offset=9,
        leader_epoch=2,
        attributes=0x30,
        base_timestamp=1234,
        max_timestamp=1234,
        producer_id=77,
        producer_epoch=3,
    )
    assert len(marker) == 78
    (read,) = iterate(marker)
    assert parse_marker(read.key, read.value) == (commit, 12)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", bytes(6)),
        (bytes(3), bytes(6)),
        (bytes(4), bytes(5)),
        (b"\0\0\0\2", bytes(6)),  # leader change
        (b"\0\0\xff\xff", bytes(6)),
        (b"\xff\xff\0\0", bytes(6)),
        (bytes(4), b"\xff\xff\0\0\0\0"),
    ],
)
def test_other_control_records_are_no_markers(key, value):
    with pytest.raises(ValueError, match="end-transaction marker"):
        parse_marker(key, value)


def test_newer_markers_are_read_as_far_as_they_are_known():
    assert parse_marker(b"\0\7\0\1more", b"\0\7\0\0\0\5more") == (True, 5)


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_recompress_changes_the_codec_alone(source, target):
    data = b"before" + build(RECORDS, codec=source, base_offset=4, producer_id=9, producer_epoch=1, base_sequence=7)
    batch = scan(data, 6)
    with exact(data) as buffer:
        other = recompress(buffer, batch, target)
    changed = scan(other)
    assert changed.compression == target
    for name in ("base_offset", "last_offset", "producer_id", "base_sequence", "record_count", "max_timestamp"):
        assert getattr(changed, name) == getattr(batch, name)
    assert [repr(r) for r in iterate(other)] == [repr(r) for r in iterate(data, 6)]


def test_recompress_keeps_to_its_limit_and_its_codecs():
    data = build([(None, bytes(1 << 20), 0, ())], codec=4)
    with pytest.raises(BatchError) as caught:
        recompress(data, scan(data), 1, limit_bytes=1 << 20)
    assert caught.value.verdict == Verdict.TOO_LARGE
    broken = oracle.write_batch(b"nonsense", 1, attributes=3)
    with pytest.raises(BatchError) as caught:
        recompress(broken, scan(broken), 1)
    assert caught.value.verdict == Verdict.BAD_COMPRESSED_DATA
    with pytest.raises(ValueError, match="no codec"):
        recompress(data, scan(data), 5)
    with pytest.raises(ValueError, match="not one of this buffer"):
        recompress(data[:-1], scan(data), 0)

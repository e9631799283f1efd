import copy
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext import batch as cext_batch
from kafka_shim.cext.batch import Batch, BatchError, Verdict, scan, scan_all, stamp
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PAYLOAD = oracle.write_record(0, 0, b"k", b"v")
FACTS = [name for name in oracle.Header._fields if name != "length"]


def verdict_of(data, **options):
    with exact(data) as buffer:
        try:
            scan(buffer, **options)
        except BatchError as error:
            return error.verdict
    return Verdict.OK


@given(
    st.builds(
        oracle.write_batch,
        st.binary(max_size=300),
        st.integers(0, 2**31 - 1),
        base_offset=INT64,
        leader_epoch=INT32,
        attributes=INT16.filter(lambda bits: bits & 7 <= 4),
        last_offset_delta=st.just(2**31 - 1),
        base_timestamp=INT64,
        max_timestamp=INT64,
        producer_id=INT64,
        producer_epoch=INT16,
        base_sequence=INT32,
    ),
    st.binary(max_size=40),
    st.binary(max_size=40),
)
def test_scan_reads_every_field(data, before, after):
    expected = oracle.scan(data)
    with exact(before + data + after) as buffer:
        batch = scan(buffer, len(before))
    assert batch.position == len(before)
    assert batch.size_bytes == len(data)
    assert batch.end_position == len(before) + len(data)
    for name in FACTS:
        assert getattr(batch, name) == getattr(expected, name), name
    assert batch.compression == expected.attributes & 7
    assert batch.is_log_append_time == bool(expected.attributes & 8)
    assert batch.is_transactional == bool(expected.attributes & 16)
    assert batch.is_control == bool(expected.attributes & 32)
    assert batch.has_delete_horizon == bool(expected.attributes & 64)
    assert batch.last_offset == oracle.to_signed(expected.base_offset + expected.last_offset_delta, 64)
    assert batch.next_offset == oracle.to_signed(expected.base_offset + expected.last_offset_delta + 1, 64)


@pytest.mark.parametrize(
    ("base", "count", "last"),
    [(0, 1, 0), (5, 3, 7), (2**31 - 1, 1, 2**31 - 1), (2**31 - 1, 2, 0), (2**31 - 2, 4, 1), (-1, 9, -1)],
)
def test_last_sequence_wraps_after_the_greatest_int(base, count, last):
    assert scan(oracle.write_batch(b"", count, base_sequence=base)).last_sequence == last


def test_every_prefix_is_refused_and_read_no_further_than_its_end():
    data = oracle.write_batch(PAYLOAD, 1)
    for size in range(len(data)):
        assert verdict_of(data[:size]) == (Verdict.SHORT if size < 17 else Verdict.TRUNCATED), size
    assert verdict_of(data) == Verdict.OK


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 14, 48])
def test_lengths_below_a_header(length):
    data = bytearray(oracle.write_batch(PAYLOAD, 1))
    struct.pack_into(">i", data, 8, length)
    assert verdict_of(data) == Verdict.BAD_LENGTH


@pytest.mark.parametrize("length", [2**31 - 1, 2**31 - 12, 1000])
def test_lengths_beyond_the_buffer(length):
    data = bytearray(oracle.write_batch(PAYLOAD, 1))
    struct.pack_into(">i", data, 8, length)
    assert verdict_of(data) == Verdict.TRUNCATED


@pytest.mark.parametrize(
    ("magic", "verdict"),
    [(0, Verdict.BAD_MAGIC), (1, Verdict.BAD_MAGIC), (3, Verdict.UNKNOWN_MAGIC), (-1, Verdict.UNKNOWN_MAGIC)],
)
def test_other_magics_are_refused(magic, verdict):
    assert verdict_of(oracle.write_batch(PAYLOAD, 1, magic=magic)) == verdict


def test_magic_is_told_before_the_size_of_a_header_since_old_messages_are_smaller():
    # offset, size 14, crc, magic 1, attributes, key length -1, value length -1: the smallest message of Kafka 0.10
    old = struct.pack(">qiIbbii", 0, 14, 0, 1, 0, -1, -1)
    assert verdict_of(old) == Verdict.BAD_MAGIC


@pytest.mark.parametrize("at", [17, 20, 21, 40, 61, -1])
def test_a_flipped_bit_breaks_the_crc(at):
    data = bytearray(oracle.write_batch(PAYLOAD, 1))
    data[at] ^= 1
    assert verdict_of(data) == Verdict.BAD_CRC


def test_what_is_outside_the_crc_may_change():
    data = bytearray(oracle.write_batch(PAYLOAD, 1))
    struct.pack_into(">q", data, 0, 77)
    struct.pack_into(">i", data, 12, 9)
    batch = scan(data)
    assert (batch.base_offset, batch.leader_epoch) == (77, 9)


@pytest.mark.parametrize(
    ("count", "delta", "verdict"),
    [
        (-1, 0, Verdict.BAD_COUNT),
        (2, 0, Verdict.BAD_COUNT),
        (2**31 - 1, 5, Verdict.BAD_COUNT),
        (1, -1, Verdict.BAD_OFFSET_RANGE),
        (0, -(2**31), Verdict.BAD_OFFSET_RANGE),
        (0, 4, Verdict.OK),  # compaction emptied it
        (2, 4, Verdict.OK),  # compaction removed three
    ],
)
def test_counts_and_offset_ranges_that_contradict(count, delta, verdict):
    assert verdict_of(oracle.write_batch(b"", count, last_offset_delta=delta)) == verdict


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_refused(codec):
    assert verdict_of(oracle.write_batch(PAYLOAD, 1, attributes=codec)) == Verdict.BAD_CODEC


def test_crc_check_can_be_left_out():
    data = bytearray(oracle.write_batch(PAYLOAD, 1))
    data[-1] ^= 1
    assert scan(data, check_crc=False).record_count == 1


def test_crc_of_a_large_batch_is_checked_too():
    data = bytearray(oracle.write_batch(bytes(1 << 20), 1))
    assert verdict_of(data) == Verdict.OK
    data[-1] ^= 1
    assert verdict_of(data) == Verdict.BAD_CRC


@pytest.mark.parametrize(("start", "end"), [(-1, None), (0, 1000), (5, 4), (1000, None)])
def test_ranges_outside_the_buffer_are_the_callers_error(start, end):
    data = oracle.write_batch(PAYLOAD, 1)
    for function in (scan, scan_all):
        with pytest.raises(ValueError, match="is not inside"):
            function(data, start, end)


def test_scan_all_gives_every_batch_with_its_position():
    parts = [oracle.write_batch(PAYLOAD, 1, base_offset=i) for i in range(5)]
    data = b"".join(parts)
    with exact(data) as buffer:
        found = scan_all(buffer)
    assert [batch.base_offset for batch in found] == [0, 1, 2, 3, 4]
    assert [batch.position for batch in found] == [i * len(parts[0]) for i in range(5)]
    assert scan_all(b"") == []


def test_scan_all_names_the_place_of_the_bad_one():
    good = oracle.write_batch(PAYLOAD, 1)
    with pytest.raises(BatchError) as caught:
        scan_all(good + good[:-1])
    assert caught.value.verdict == Verdict.TRUNCATED
    assert caught.value.position == len(good)


def test_error_tells_its_verdict_in_words_and_survives_copies():
    with pytest.raises(BatchError, match=r"batch at 0: fewer bytes") as caught:
        scan(b"")
    assert caught.value.record_index == -1
    for twin in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert (twin.verdict, twin.position, str(twin)) == (Verdict.SHORT, 0, str(caught.value))


def test_every_verdict_has_words():
    for verdict in Verdict:
        if verdict != Verdict.OK:
            assert str(BatchError(verdict))


def test_a_batch_is_read_only():
    batch = scan(oracle.write_batch(PAYLOAD, 1))
    assert isinstance(batch, Batch)
    with pytest.raises(AttributeError):
        batch.base_offset = 5
    assert "base_offset=0" in repr(batch)


def test_the_header_has_the_oracles_size():
    assert cext_batch.HEADER_SIZE == oracle.HEADER_SIZE


@given(INT64, INT32)
def test_stamp_of_offset_and_epoch_leaves_the_rest(base_offset, leader_epoch):
    data = oracle.write_batch(PAYLOAD, 1, max_timestamp=5)
    with exact(b"xx" + data) as buffer:
        stamp(buffer, 2, base_offset, leader_epoch)
        stamped = bytes(buffer)[2:]
    assert stamped == struct.pack(">q", base_offset) + data[8:12] + struct.pack(">i", leader_epoch) + data[16:]


def test_stamp_of_append_time():
    data = bytearray(oracle.write_batch(PAYLOAD, 1, attributes=16, max_timestamp=5))
    stamp(data, 0, 3, 1, append_time_ms=99)
    header = oracle.scan(bytes(data))
    assert (header.attributes, header.max_timestamp, header.base_offset) == (16 | 8, 99, 3)


def test_stamp_of_create_time_corrects_the_header_that_lied():
    data = bytearray(oracle.write_batch(PAYLOAD, 1, attributes=8, max_timestamp=5))
    stamp(data, 0, 0, 0, max_timestamp=7)
    header = oracle.scan(bytes(data))
    assert (header.attributes, header.max_timestamp) == (0, 7)


def test_stamp_computes_no_crc_when_nothing_under_it_changes():
    data = bytearray(oracle.write_batch(PAYLOAD, 1, max_timestamp=5))
    data[17:21] = b"\1\2\3\4"
    stamp(data, 0, 0, 0, max_timestamp=5)
    assert data[17:21] == b"\1\2\3\4"


def test_stamp_of_a_large_batch():
    data = bytearray(oracle.write_batch(bytes(1 << 20), 1))
    stamp(data, 0, 0, 0, append_time_ms=1)
    assert scan(data).is_log_append_time


def test_stamp_refuses_what_is_no_batch_and_what_cannot_be_written():
    data = oracle.write_batch(PAYLOAD, 1)
    with pytest.raises(BatchError):
        stamp(bytearray(data[:-1]), 0, 0, 0)
    for start in (-1, len(data) + 1):
        with pytest.raises(BatchError):
            stamp(bytearray(data), start, 0, 0)
    with pytest.raises(BufferError):
        stamp(data, 0, 0, 0)

"""Appends and reads of one partition."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.cext.batch import scan, scan_all
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.records import build, iterate
from kafka_shim.config import TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage import names
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.results import RecordsError
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, batch, end, put, records, refused

DAY_MS = 24 * 3600 * 1000


def test_offsets_follow_each_other_and_come_back_in_order(log: PartitionLog) -> None:
    first, second = put(log, b"a", b"b"), put(log, b"c")
    assert (first.base_offset, first.last_offset, second.base_offset) == (0, 1, 2)
    assert first.append_time_ms == -1
    assert records(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (3, 3, 3)


def test_stored_batch_carries_offset_and_leader_epoch(log: PartitionLog) -> None:
    put(log, b"a")
    log.leader_epoch = 4
    put(log, b"b")
    headers = [header for buffer in log.read(0, 1 << 20).records for header in scan_all(buffer)]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 0), (1, 4)]
    assert log.epochs.entries == [(0, 0), (4, 1)]
    assert log.end_offset_for_epoch(0) == (0, 1)
    assert log.end_offset_for_epoch(4) == (4, 2)
    assert log.end_offset_for_epoch(5) == (-1, -1)


@pytest.mark.parametrize("count", [0, 3])
def test_an_epoch_in_which_nothing_was_appended_ends_at_the_end_of_the_log(log: PartitionLog, count: int) -> None:
    """What a client has who looked for the end of the log in such an epoch, before the next unclean stop."""
    for _ in range(count):
        put(log, b"a")
    log.leader_epoch = 4
    told = log.latest()
    assert (told.offset, told.leader_epoch) == (count, 4)
    log.leader_epoch = 5
    known = (0, count) if count else (4, 0)
    assert log.end_offset_for_epoch(4) == known
    put(log, b"b")
    assert log.end_offset_for_epoch(4) == known, "as it is once the new epoch has records"
    assert [log.end_offset_for_epoch(epoch) for epoch in (-1, 6)] == [(-1, -1)] * 2


def test_readonly_request_bytes_are_not_changed(log: PartitionLog) -> None:
    put(log, b"first")
    data = bytes(batch(b"a"))
    append_as_client(log, memoryview(data), now_ms=NOW_MS, version=12)
    assert scan(data).base_offset == 0
    assert records(log)[-1] == (1, b"a")


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_are_stored_as_they_came(log: PartitionLog, codec: int) -> None:
    put(log, *[b"x" * 100] * 50, codec=codec)
    assert scan(log.read(0, 1 << 20).records[0]).compression == codec
    assert len(records(log)) == 50


@pytest.mark.option("topic:compression.type")
@pytest.mark.parametrize(("name", "codec"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)])
def test_topic_compression_type_wins(make_disk: Callable[..., Disk], name: str, codec: int) -> None:
    log = make_disk({"compression.type": name}).open()
    put(log, *[b"x" * 100] * 50, codec=0 if codec else 1)
    assert scan(log.read(0, 1 << 20).records[0]).compression == codec
    assert [value for _, value in records(log)] == [b"x" * 100] * 50


@pytest.mark.option("topic:message.timestamp.type")
def test_log_append_time_is_stamped_and_answered(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"message.timestamp.type": "LogAppendTime"}).open()
    appended = put(log, b"a", timestamp=5, now_ms=NOW_MS + 7)
    buffer = log.read(0, 1 << 20).records[0]
    assert appended.append_time_ms == NOW_MS + 7
    assert scan(buffer).is_log_append_time
    assert [record.timestamp for record in iterate(buffer)] == [NOW_MS + 7]


def test_header_maximum_is_what_the_records_say(log: PartitionLog) -> None:
    data = batch(b"a", timestamp=NOW_MS)
    lie = (NOW_MS + 5).to_bytes(8, "big")
    data[35:43] = lie
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    append_as_client(log, data, now_ms=NOW_MS, version=12)
    assert scan(log.read(0, 1 << 20).records[0]).max_timestamp == NOW_MS


# --- refusals (A10)


def test_wrong_crc_is_corrupt(log: PartitionLog) -> None:
    data = batch(b"a")
    data[-1] ^= 1
    with refused(ErrorCode.CORRUPT_MESSAGE):
        append_as_client(log, data, now_ms=NOW_MS, version=12)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("data", [b"", b"\0" * 10, bytes(batch(b"a"))[:-1]])
def test_no_whole_batch_is_an_invalid_record(log: PartitionLog, data: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        append_as_client(log, data, now_ms=NOW_MS, version=12)
    assert caught.value.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)


def _damaged(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1
    return bytes(changed)


def _lying(content: bytes) -> bytes:
    """A record count that is not the records', under a good CRC."""
    changed = bytearray(content)
    changed[57:61] = (9).to_bytes(4)
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4)
    return bytes(changed)


AT_BASE_OFFSET, AT_CRC = 7, 17
GOOD, LARGE, ZSTD = bytes(batch(b"a")), bytes(batch(b"v" * 5000)), bytes(batch(b"a", codec=4))
SHORTEST = bytes(8) + (14).to_bytes(4) + bytes(4)
TOO_SHORT = bytes(8) + (13).to_bytes(4) + bytes(4)


@pytest.mark.parametrize(
    ("content", "code", "version"),
    [
        (_damaged(GOOD, AT_CRC), ErrorCode.CORRUPT_MESSAGE, 9),
        (_damaged(_damaged(GOOD, AT_CRC), AT_BASE_OFFSET), ErrorCode.INVALID_RECORD, 9),
        (_damaged(LARGE, AT_CRC), ErrorCode.MESSAGE_TOO_LARGE, 9),
        (_damaged(GOOD, AT_CRC) + GOOD, ErrorCode.INVALID_RECORD, 9),
        (_damaged(GOOD, AT_CRC) + b"x" * 30, ErrorCode.CORRUPT_MESSAGE, 9),
        (_damaged(GOOD, AT_BASE_OFFSET) + b"x" * 30, ErrorCode.CORRUPT_MESSAGE, 9),
        (_damaged(ZSTD, AT_CRC), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 6),
        (_lying(ZSTD), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 6),
        (_lying(ZSTD), ErrorCode.INVALID_RECORD, 7),
        *((TOO_SHORT[:size], ErrorCode.CORRUPT_MESSAGE, 9) for size in (12, 13, 16)),
        *((SHORTEST[:size], ErrorCode.INVALID_RECORD, 9) for size in (11, 12, 16)),
        *((GOOD + TOO_SHORT[:size], ErrorCode.CORRUPT_MESSAGE, 9) for size in (12, 16)),
    ],
)
def test_of_several_flaws_the_answer_names_the_one_that_kafka_meets_first(
    make_disk: Callable[..., Disk], content: bytes, code: ErrorCode, version: int
) -> None:
    log = make_disk({"max.message.bytes": "1000"}).open()
    with refused(code):
        append_as_client(log, content, now_ms=NOW_MS, version=version)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("rest", [b"x" * 11, SHORTEST[:12], SHORTEST, GOOD[:30]])
def test_a_part_of_a_batch_behind_a_whole_one_is_left_out(make_disk: Callable[..., Disk], rest: bytes) -> None:
    log = make_disk().open()
    append_as_client(log, GOOD + rest, now_ms=NOW_MS, version=9)
    assert (log.log_end_offset, log.size_bytes) == (1, len(GOOD))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_data_that_does_not_decompress_is_answered_as_kafka_does(log: PartitionLog, codec: int) -> None:
    data = batch(b"x" * 500, codec=codec)
    broken = data[:61] + b"\x01garbage, whatever the codec" * 2
    broken[8:12] = (len(broken) - 12).to_bytes(4, "big")
    broken[17:21] = crc32c(broken[21:]).to_bytes(4, "big")
    with refused(ErrorCode.UNKNOWN_SERVER_ERROR):
        append_as_client(log, broken, now_ms=NOW_MS, version=12)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_old_magic_is_an_invalid_record(log: PartitionLog, magic: int) -> None:
    data = batch(b"a")
    data[16] = magic
    with refused(ErrorCode.INVALID_RECORD):
        append_as_client(log, data, now_ms=NOW_MS, version=12)


def test_two_batches_are_refused_and_a_part_of_a_second_is_ignored(log: PartitionLog) -> None:
    with refused(ErrorCode.INVALID_RECORD):
        append_as_client(log, batch(b"a") + batch(b"b"), now_ms=NOW_MS, version=12)
    append_as_client(log, batch(b"a") + batch(b"b")[:-1], now_ms=NOW_MS, version=12)
    assert records(log) == [(0, b"a")]
    assert log.size_bytes == len(batch(b"a"))


def test_first_offset_must_be_zero(log: PartitionLog) -> None:
    with refused(ErrorCode.INVALID_RECORD):
        append_as_client(log, build([(None, b"a", NOW_MS, ())], base_offset=5), now_ms=NOW_MS, version=12)


def test_clients_may_not_write_control_batches(log: PartitionLog) -> None:
    data = build([(b"\0\0\0\0", b"\0\0\0\0\0\0", NOW_MS, ())], control=True)
    with refused(ErrorCode.INVALID_RECORD):
        append_as_client(log, data, now_ms=NOW_MS, version=12)


def test_producer_id_needs_a_sequence(log: PartitionLog) -> None:
    with refused(ErrorCode.INVALID_RECORD):
        put(log, b"a", pid=1, epoch=0, seq=-1)


def test_zstd_needs_produce_7(log: PartitionLog) -> None:
    with refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
        put(log, b"a", codec=4, version=6)
    assert put(log, b"a", codec=4, version=7).base_offset == 0


def test_max_message_bytes_counts_the_batch(make_disk: Callable[..., Disk]) -> None:
    exact = len(batch(b"x" * 100))
    log = make_disk({"max.message.bytes": str(exact)}).open()
    put(log, b"x" * 100)
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        put(log, b"x" * 101)


def test_max_message_bytes_holds_for_batches_of_coordinators(make_disk: Callable[..., Disk]) -> None:
    exact = len(batch(b"x" * 100))
    log = make_disk({"max.message.bytes": str(exact)}).open()
    log.append_batch(bytearray(batch(b"x" * 100)), now_ms=NOW_MS)
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        log.append_batch(bytearray(batch(b"x" * 101)), now_ms=NOW_MS)


def test_recompression_is_measured_again(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"max.message.bytes": "1000", "compression.type": "uncompressed"}).open()
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        put(log, b"x" * 5000, codec=1)


def test_batch_above_segment_bytes_is_refused(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.bytes": "1048576", "max.message.bytes": "4000000"}).open()
    with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
        put(log, os.urandom(1048577))


@pytest.mark.parametrize("commit", [False, True])
def test_a_marker_above_segment_bytes_is_refused_and_loses_no_record(
    make_disk: Callable[..., Disk], commit: bool
) -> None:
    disk = make_disk({"internal.segment.bytes": "200", "retention.ms": "-1", "retention.bytes": "200"})
    log = disk.open()
    put(log, b"a", pid=1, seq=0, txn=True)
    log.configure(TopicConfig(disk.logs.config, {**disk.topic, "internal.segment.bytes": "77"}))
    for _ in range(3):
        with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
            end(log, 1, 0, commit=commit)
    log.configure(TopicConfig(disk.logs.config, disk.topic))
    for value in (b"b", b"c", b"d"):
        put(log, value)
    end(log, 1, 0, commit=commit)
    disk.logs.retain(NOW_MS)
    expected = records(log)
    assert expected[-1] == (3, b"d")
    disk.crash()
    assert records(disk.open()) == expected


def test_a_roll_of_an_empty_segment_keeps_it(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    for _ in range(3):
        log.roll(NOW_MS)
    put(log, b"b")
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    log.delete_records_before(2)
    disk.logs.retain(NOW_MS)
    put(log, b"c")
    disk.crash()
    assert records(disk.open()) == [(2, b"c")]


def test_time_too_far_ahead_names_each_record(log: PartitionLog) -> None:
    data = build([(None, b"a", NOW_MS, ()), (None, b"b", NOW_MS + 2 * 3600_000, ()), (None, b"c", -1, ())])
    with pytest.raises(RecordsError) as caught:
        append_as_client(log, data, now_ms=NOW_MS, version=12)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [1]


@pytest.mark.option("topic:message.timestamp.before.max.ms")
def test_time_too_old_is_refused_when_configured(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"message.timestamp.before.max.ms": "1000"}).open()
    with refused(ErrorCode.INVALID_TIMESTAMP):
        put(log, b"a", timestamp=NOW_MS - 1001)
    assert put(log, b"a", timestamp=NOW_MS - 1000).base_offset == 0


@pytest.mark.parametrize("codec", [0, 1])
def test_times_before_1970_are_limited_as_others(make_disk: Callable[..., Disk], codec: int) -> None:
    log = make_disk({"message.timestamp.before.max.ms": "1000"}).open()
    with refused(ErrorCode.INVALID_TIMESTAMP):
        put(log, b"a", timestamp=-2, codec=codec)
    assert put(log, b"a", timestamp=-1, codec=codec).base_offset == 0
    unlimited = make_disk({}).open()
    with refused(ErrorCode.INVALID_TIMESTAMP):
        put(unlimited, b"a", timestamp=-(2**63), codec=codec)
    assert put(unlimited, b"a", timestamp=-2, codec=codec).base_offset == 0


def test_compacted_topic_wants_keys_and_names_the_records_without(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"cleanup.policy": "compact"}).open()
    data = build([(b"k", b"a", NOW_MS, ()), (None, b"b", NOW_MS, ())])
    with pytest.raises(RecordsError) as caught:
        append_as_client(log, data, now_ms=NOW_MS, version=12)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.record_errors] == [1]


@pytest.mark.parametrize("codec", [0, 1])
def test_each_record_shows_its_first_fault_and_one_bad_time_gives_the_code(
    make_disk: Callable[..., Disk], codec: int
) -> None:
    log = make_disk({"cleanup.policy": "compact"}).open()
    late = NOW_MS + 2 * 3600_000
    bad = [(b"k", b"a", late, ()), (None, b"b", late, ()), (b"k", b"c", NOW_MS, ()), (None, b"d", NOW_MS, ())]
    with pytest.raises(RecordsError) as caught:
        append_as_client(log, build(bad, codec=codec), now_ms=NOW_MS, version=12)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert caught.value.message == "One or more records have been rejected due to invalid timestamp"
    assert [(index, text.split()[0]) for index, text in caught.value.record_errors] == [
        (0, "Timestamp"),
        (1, "Compacted"),
        (3, "Compacted"),
    ]
    with pytest.raises(RecordsError) as caught:
        append_as_client(log, build(bad[1:], codec=codec), now_ms=NOW_MS, version=12)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.record_errors] == [0, 2]


# --- reads


def test_offset_inside_a_batch_gives_the_whole_batch(log: PartitionLog) -> None:
    put(log, b"a", b"b", b"c")
    put(log, b"d")
    fetched = log.read(1, 1)
    assert scan(fetched.records[0]).base_offset == 0
    assert [header.base_offset for header in scan_all(fetched.records[0])] == [0]


def test_reads_fill_the_limit_and_only_the_last_batch_is_cut(log: PartitionLog) -> None:
    sizes = [100, 3000, 10, 9000, 70000, 1, 5000, 300]
    for size in sizes * 4:
        put(log, b"z" * size)
    whole = log.read(0, 1 << 30).records[0]
    starts = {header.base_offset: header.position for header in scan_all(whole)}
    lengths = {header.base_offset: header.size_bytes for header in scan_all(whole)}
    for limit in (1, 500, 4096, 10_000, 80_000, 200_000):
        for offset, start in starts.items():
            wanted = whole[start : start + max(limit, lengths[offset])]
            assert log.read(offset, limit).records == [wanted]
            assert log.read(offset, limit).size_bytes == len(wanted)


def test_without_at_least_one_a_big_batch_is_left_out(log: PartitionLog) -> None:
    put(log, b"z" * 1000)
    assert log.read(0, 100, at_least_one=False).records == []
    assert log.read(0, 100).size_bytes > 1000


def test_offsets_outside_are_out_of_range_and_the_end_is_empty(log: PartitionLog) -> None:
    put(log, b"a")
    assert log.read(1, 100).records == []
    for offset in (-1, 2):
        with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
            log.read(offset, 100)


def test_bad_header_in_a_closed_segment_is_an_error_and_hides_nothing_else(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for number in range(3):
        put(log, b"a" * 100, timestamp=NOW_MS + number)
    log.roll(NOW_MS)
    put(log, b"b")
    found = log.segments[0].find(1)
    assert found is not None
    disk.stop()
    with (disk.partition / f"{0:020}.log").open("r+b") as file:
        file.seek(found[0] + 8)
        file.write(bytes(4))  # the batch's length
    log = disk.open()
    assert len(records(log, 3)) == 1
    assert scan_all(log.read(0, 1).records[0])[0].base_offset == 0
    for offset in (1, 2):
        with refused(ErrorCode.CORRUPT_MESSAGE):
            log.read(offset, 1000)
    assert log.offset_for_timestamp(NOW_MS).offset == 0
    with refused(ErrorCode.CORRUPT_MESSAGE):
        log.offset_for_timestamp(NOW_MS + 1)
    put(log, b"c")
    assert len(records(log, 3)) == 2


def test_views_outlive_roll_delete_and_close(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"segment.bytes": "16777216", "max.message.bytes": "9000000"})
    log = disk.open()
    put(log, b"small")
    put(log, b"z" * 8_000_000)
    small, large = log.read(0, 10).records[0], log.read(1, 1).records[0]
    log.roll(NOW_MS)
    disk.logs.delete("t", 0)
    disk.clock.advance(60_000)
    disk.stop()
    assert scan(small).record_count == 1
    assert [len(record.value or b"") for record in iterate(large)] == [8_000_000]


# --- look-ups by time


def test_look_up_by_time_across_segments(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.bytes": "1048576"}).open()
    for number in range(300):
        put(log, b"z" * 10_000, timestamp=NOW_MS + number * 10 - DAY_MS)
    assert len(log.segments) > 2
    for number in (0, 1, 57, 150, 299):
        found = log.offset_for_timestamp(NOW_MS + number * 10 - DAY_MS - 5)
        assert (found.offset, found.timestamp_ms) == (number, NOW_MS + number * 10 - DAY_MS)
    assert log.offset_for_timestamp(NOW_MS + 300 * 10).offset == -1
    assert log.max_timestamp().offset == 299
    assert log.earliest().offset == 0
    assert log.latest().offset == 300


def test_time_look_up_at_or_above_the_stable_offset_finds_nothing(log: PartitionLog) -> None:
    put(log, b"a", timestamp=NOW_MS)
    put(log, b"b", timestamp=NOW_MS + 10, pid=1, seq=0, txn=True)
    assert log.offset_for_timestamp(NOW_MS + 5, 0).offset == 1
    assert log.offset_for_timestamp(NOW_MS + 5, 1).offset == -1
    assert log.max_timestamp(1).offset == -1
    assert log.latest(1).offset == 1


def test_records_without_time_have_the_first_as_the_latest(log: PartitionLog) -> None:
    def found() -> tuple[int, int, int]:
        latest = log.max_timestamp()
        return latest.timestamp_ms, latest.offset, latest.leader_epoch

    assert found() == (-1, -1, -1)
    put(log, b"a", b"b", timestamp=-1)
    put(log, b"c", timestamp=-1)
    assert found() == (-1, 0, 0)
    assert log.offset_for_timestamp(0).offset == -1
    put(log, b"d", timestamp=0)
    assert found() == (0, 3, 0)


# --- rolling


def test_segments_roll_by_size(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"segment.bytes": "1048576"})
    log = disk.open()
    for _ in range(30):
        put(log, b"z" * 100_000)
    assert [segment.base_offset for segment in log.segments] == [0, 10, 20]
    assert "00000000000000000010.snapshot" in disk.files()
    assert len(records(log)) == 30


def test_segments_roll_by_record_time(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.ms": "1000"}).open()
    put(log, b"a", timestamp=NOW_MS)
    put(log, b"b", timestamp=NOW_MS + 1000)
    put(log, b"c", timestamp=NOW_MS + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_segments_without_record_time_roll_by_the_clock(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.ms": "1000"}).open()
    put(log, b"a", timestamp=-1, now_ms=NOW_MS)
    put(log, b"b", timestamp=-1, now_ms=NOW_MS + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


@pytest.mark.option("topic:segment.index.bytes")
def test_segments_roll_when_the_index_is_full(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.index.bytes": "32", "index.interval.bytes": "0"}).open()
    for _ in range(20):
        put(log, b"z" * 100)
    assert len(log.segments) > 3
    assert len(records(log)) == 20


def test_segments_roll_when_the_offset_index_alone_is_full(make_disk: Callable[..., Disk]) -> None:
    """Records of one time have one entry in the time index; 48 bytes are six entries of the offset index."""
    log = make_disk({"segment.index.bytes": "48", "index.interval.bytes": "0"}).open()
    for _ in range(20):
        put(log, b"z" * 100)
    assert [segment.base_offset for segment in log.segments] == [0, 7, 14]


def test_the_last_entry_of_a_time_index_is_the_latest_time_of_its_segment(log: PartitionLog) -> None:
    for timestamp in (NOW_MS, NOW_MS + 7, NOW_MS + 5):
        put(log, b"a", timestamp=timestamp)
    path = log.active.path(names.TIME_INDEX)
    log.roll(NOW_MS)
    with open(path, "rb") as file:
        assert file.read()[-12:] == (NOW_MS + 7).to_bytes(8) + (1).to_bytes(4)


def test_segments_roll_before_the_relative_offset_overflows(log: PartitionLog) -> None:
    put(log, b"a")
    log.log_end_offset = (1 << 31) - 1
    put(log, b"b")
    put(log, b"c")
    assert [segment.base_offset for segment in log.segments] == [0, 1 << 31]


@pytest.mark.parametrize("way", ["crash", "stop"])
def test_a_batch_too_far_above_its_segment_keeps_nobody_from_appends_or_a_clean_stop(
    make_disk: Callable[..., Disk], way: str
) -> None:
    """As Kafka before 1.0 could write it. No index can have its offset, but the time index needs its time."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    path = Path(log.active.path(names.LOG))
    disk.crash()
    far = (1 << 31) + 10
    raw = batch(b"b", timestamp=NOW_MS + 5)
    path.write_bytes(path.read_bytes() + far.to_bytes(8) + raw[8:])
    log = disk.open()
    getattr(disk, way)()
    log = disk.open()
    assert put(log, b"c").base_offset == far + 1
    getattr(disk, way)()
    log = disk.open()
    assert records(log) == [(0, b"a"), (far, b"b"), (far + 1, b"c")]
    assert log.segments[0].largest_timestamp_ms() == NOW_MS + 5
    assert log.offset_for_timestamp(NOW_MS + 1).offset == far
    assert log.max_timestamp().offset == far


@pytest.mark.option("topic:segment.jitter.ms")
def test_jitter_spreads_rolls_the_same_way_each_time(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.ms": "10000", "segment.jitter.ms": "9000"}).open()
    jitter = log.active._jitter_ms(log.config)
    assert 0 <= jitter < 9000
    assert jitter == log.active._jitter_ms(log.config)


# --- start offset, subscriptions


def test_delete_records_raises_the_start_and_is_kept_by_a_crash(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for _ in range(5):
        put(log, b"a")
    assert log.delete_records_before(3) == 3
    assert log.delete_records_before(2) == 3
    for offset in (6, -2):
        with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
            log.delete_records_before(offset)
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(2, 100)
    assert [offset for offset, _ in records(log)] == [3, 4]
    disk.crash()
    log = disk.open()
    assert log.log_start_offset == 3
    assert log.delete_records_before(-1) == 5
    disk.stop()
    assert disk.open().log_start_offset == 5


def test_delete_records_is_refused_on_a_compacted_topic(make_disk: Callable[..., Disk]) -> None:
    with refused(ErrorCode.POLICY_VIOLATION):
        make_disk({"cleanup.policy": "compact"}).open().delete_records_before(0)


def test_readers_are_woken_by_appends_markers_and_deletion(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    woken: list[int] = []

    def wake() -> None:
        woken.append(log.log_end_offset)

    log.subscribe(wake)
    put(log, b"a")
    put(log, b"b", pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=True)
    log.delete_records_before(1)
    disk.logs.delete("t", 0)
    assert woken == [1, 2, 3, 3, 3]
    log.unsubscribe(wake)
    log.unsubscribe(wake)
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        put(log, b"c")


def test_broker_batches_are_appended_without_client_rules(log: PartitionLog) -> None:
    appended = log.append_batch(build([(None, b"x", NOW_MS, ())] * 3), now_ms=NOW_MS)
    assert (appended.base_offset, appended.last_offset) == (0, 2)
    assert len(list(log.batches())) == 1


def test_batches_go_on_when_segments_close_and_are_compacted_meanwhile(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"cleanup.policy": "compact", "file.delete.delay.ms": "1"})
    log = disk.open()
    for number in range(9):
        put(log, b"v%d" % number, key=b"k%d" % (number % 5))
        if number % 3 == 2:
            log.roll(NOW_MS)
    walk = log.batches()
    found = [next(walk)]
    log.segments[0].close_file()
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]  # its descriptor means something else now
    try:
        found.append(next(walk))
        disk.logs.cleaner.clean_now(log)
        disk.clock.advance(1)
        found += walk
    finally:
        for fd in taken:
            os.close(fd)
    assert [header.base_offset for _, header in found] == [0, 1, 2, 4, 5, 6, 7, 8]
    assert [record.value for buffer, _ in found for record in iterate(buffer)][3:] == [b"v%d" % n for n in range(4, 9)]


def test_batches_walk_from_an_offset(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.bytes": "1048576"}).open()
    for _ in range(40):
        put(log, b"z" * 50_000, b"y")
    assert [header.base_offset for _, header in log.batches(61)] == list(range(60, 80, 2))
    assert all(len(buffer) == header.size_bytes for buffer, header in log.batches())


def test_the_earliest_offset_has_the_epoch_of_its_batch(log: PartitionLog) -> None:
    assert (log.earliest().offset, log.earliest().leader_epoch) == (0, 0)
    log.leader_epoch = 4
    put(log, b"a")
    put(log, b"b")
    assert (log.earliest().offset, log.earliest().leader_epoch) == (0, 4)
    log.delete_records_before(1)
    assert (log.earliest().offset, log.earliest().leader_epoch, log.earliest().timestamp_ms) == (1, 4, -1)


def test_the_earliest_offset_before_the_first_known_epoch_has_none(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({})
    log = disk.open()
    put(log, b"a")
    put(log, b"b")
    disk.stop()
    (disk.partition / "leader-epoch-checkpoint").write_text("0\n1\n4 1\n")
    found = disk.open().earliest()
    assert (found.timestamp_ms, found.offset, found.leader_epoch) == (-1, 0, -1)

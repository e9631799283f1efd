"""Idempotence (A2-A9), transactions on a partition (B9, B11, B14, B24)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_shim.cext.batch import scan
from kafka_shim.cext.records import build_marker
from kafka_shim.errors import ErrorCode
from kafka_shim.storage import producer_snapshot
from kafka_shim.storage.compaction import empty_batch
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.producers import EXPIRY_SLICE, MAX_SEQUENCE, ProducerEntry, ProducerRefusal, Producers
from kafka_shim.tests.appends import append_as_client, start_verification
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, batch, end, put, records, refused
from kafka_shim.turns import at_once

DAY_MS = 24 * 3600 * 1000


def test_sequences_follow_each_other(log: PartitionLog) -> None:
    put(log, b"a", b"b", pid=1, seq=0)
    put(log, b"c", pid=1, seq=2)
    for sequence in (1, 4, 0):
        with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            put(log, b"x", pid=1, seq=sequence)
    assert log.log_end_offset == 3


def test_sequence_wraps_to_zero(log: PartitionLog) -> None:
    put(log, b"a", b"b", pid=1, seq=MAX_SEQUENCE - 1)
    put(log, b"c", pid=1, seq=0)
    put(log, *[b"d"] * 3, pid=2, seq=MAX_SEQUENCE)
    put(log, b"e", pid=2, seq=2)
    assert log.log_end_offset == 7


def test_a_batch_of_a_known_producer_may_wrap_to_zero(log: PartitionLog) -> None:
    put(log, b"a", pid=1, seq=MAX_SEQUENCE - 1)
    put(log, *[b"b"] * 3, pid=1, seq=MAX_SEQUENCE)
    assert put(log, *[b"b"] * 3, pid=1, seq=MAX_SEQUENCE).duplicate
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        put(log, b"d", pid=1, seq=3)
    put(log, b"c", pid=1, seq=2)
    assert log.log_end_offset == 5


def test_five_batches_back_are_duplicates_and_the_sixth_is_not(log: PartitionLog) -> None:
    for sequence in range(6):
        put(log, b"v%d" % sequence, pid=1, seq=sequence, timestamp=NOW_MS + sequence)
    for sequence in range(1, 6):
        again = put(log, b"v%d" % sequence, pid=1, seq=sequence)
        assert (again.duplicate, again.base_offset, again.append_time_ms) == (True, sequence, NOW_MS + sequence)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        put(log, b"v0", pid=1, seq=0)
    assert log.log_end_offset == 6


def test_partial_overlap_is_out_of_order(log: PartitionLog) -> None:
    put(log, b"a", b"b", b"c", pid=1, seq=0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        put(log, b"b", b"c", b"d", pid=1, seq=1)


def test_new_epoch_starts_at_zero_and_old_one_is_refused(log: PartitionLog) -> None:
    put(log, b"a", pid=1, epoch=0, seq=0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        put(log, b"b", pid=1, epoch=1, seq=1)
    put(log, b"b", pid=1, epoch=1, seq=0)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        put(log, b"a", pid=1, epoch=0, seq=0)


def test_unknown_producer_may_begin_anywhere(log: PartitionLog) -> None:
    assert put(log, b"a", pid=99, epoch=7, seq=1000).base_offset == 0


def test_refusal_has_a_reason_for_the_log_and_none_for_the_wire(log: PartitionLog) -> None:
    put(log, b"a", pid=1, seq=0)
    with pytest.raises(ProducerRefusal) as caught:
        put(log, b"a", pid=1, seq=5)
    assert caught.value.message is None
    assert "sequence 5, expected 1" in caught.value.reason


def test_refused_and_duplicate_batches_leave_no_trace(log: PartitionLog) -> None:
    put(log, b"a", pid=1, seq=0)
    size = log.size_bytes
    put(log, b"a", pid=1, seq=0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        put(log, b"c", pid=1, seq=2)
    assert log.size_bytes == size
    assert log.producers.entries[1].last_sequence == 0


def test_after_clean_restart_only_the_newest_batch_is_a_duplicate(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for sequence in range(5):
        put(log, b"v", pid=1, seq=sequence)
    disk.stop()
    log = disk.open()
    assert put(log, b"v", pid=1, seq=4).duplicate
    for sequence in range(4):
        with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            put(log, b"v", pid=1, seq=sequence)
    assert put(log, b"v", pid=1, seq=5).base_offset == 5


def test_after_a_crash_replayed_batches_are_cached_again(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for sequence in range(6):
        put(log, b"v", pid=1, seq=sequence)
    disk.crash()
    log = disk.open()
    for sequence in range(1, 6):
        assert put(log, b"v", pid=1, seq=sequence).base_offset == sequence


def test_snapshot_round_trips_and_refuses_damage(log: PartitionLog) -> None:
    put(log, *[b"a"] * 3, pid=1, seq=MAX_SEQUENCE)
    put(log, b"b", pid=2, epoch=3, seq=0, txn=True)
    content = producer_snapshot.encode(log.producers.entries.values())
    assert len(content) == 10 + 2 * 46
    first, second = producer_snapshot.decode(content)
    assert first.batches == log.producers.entries[1].batches
    assert (second.epoch, second.txn_first_offset) == (3, 3)
    for damaged in (content[:-1], content + b"\0", b"\0\2" + content[2:], content[:20] + b"\xff" + content[21:], b""):
        with pytest.raises(producer_snapshot.SnapshotError):
            producer_snapshot.decode(damaged)


def test_producers_expire_by_record_time_but_not_with_an_open_transaction(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0)
    put(log, b"b", pid=2, seq=0, txn=True)
    assert disk.logs.expire_producers(NOW_MS + DAY_MS - 1) == 0
    assert disk.logs.expire_producers(NOW_MS + DAY_MS) == 1
    assert list(log.producers.entries) == [2]
    disk.stop()
    disk.clock.advance(10 * DAY_MS)
    assert list(disk.open().producers.entries) == [2]


def test_producers_expire_in_slices_and_those_that_come_back_meanwhile_stay(log: PartitionLog) -> None:
    for pid in range(3 * EXPIRY_SLICE):
        put(log, b"a", pid=pid, seq=0)
    slices = log.producers.expire_in_slices(NOW_MS + DAY_MS, DAY_MS)
    next(slices)
    assert len(log.producers.entries) == 2 * EXPIRY_SLICE
    put(log, b"b", pid=3 * EXPIRY_SLICE - 1, seq=1, timestamp=NOW_MS + DAY_MS, now_ms=NOW_MS + DAY_MS)
    put(log, b"b", pid=3 * EXPIRY_SLICE, seq=0, timestamp=NOW_MS + DAY_MS, now_ms=NOW_MS + DAY_MS)
    assert at_once(slices) == 3 * EXPIRY_SLICE - 1
    assert list(log.producers.entries) == [3 * EXPIRY_SLICE - 1, 3 * EXPIRY_SLICE]


# --- transactions


def test_open_transaction_bounds_the_stable_offset_until_its_marker(log: PartitionLog) -> None:
    put(log, b"plain")
    put(log, b"a", pid=1, seq=0, txn=True)
    put(log, b"b", pid=2, seq=0, txn=True)
    put(log, b"more")
    assert log.last_stable_offset == 1
    assert records(log, isolation=1) == [(0, b"plain")]
    end(log, 1, 0, commit=True)
    assert log.last_stable_offset == 2
    assert log.read(3, 1000, isolation_level=1).records == []
    end(log, 2, 0, commit=False)
    assert log.last_stable_offset == 6
    assert records(log, isolation=1) == [(0, b"plain"), (1, b"a"), (3, b"more")]
    assert len(records(log)) == 4
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(7, 1000, isolation_level=1)


def test_aborted_list_is_in_the_order_of_the_markers(log: PartitionLog) -> None:
    for pid in (1, 2, 3):
        put(log, b"x", pid=pid, seq=0, txn=True)
    for pid in (3, 1, 2):
        end(log, pid, 0, commit=False)
    assert log.read(0, 1 << 20, isolation_level=1).aborted == [(3, 2), (1, 0), (2, 1)]
    assert log.read(0, 1 << 20).aborted is None
    put(log, b"later")
    assert log.read(6, 1 << 20, isolation_level=1).aborted == []


def test_aborted_list_spans_segments(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({"segment.bytes": "1048576"}).open()
    put(log, b"x", pid=1, seq=0, txn=True)
    for _ in range(30):
        put(log, b"z" * 100_000)
    end(log, 1, 0, commit=False)
    assert len(log.segments) > 2
    assert log.read(0, 1 << 20, isolation_level=1).aborted == [(1, 0)]
    assert (0, b"x") not in records(log, isolation=1)


def test_marker_of_tv1_keeps_the_epoch_and_may_be_repeated(log: PartitionLog) -> None:
    put(log, b"a", pid=1, epoch=3, seq=0, txn=True)
    assert end(log, 1, 3, commit=True, version=1) == 1
    assert end(log, 1, 3, commit=True, version=1) == 2
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(log, 1, 2, commit=True, version=0)
    put(log, b"b", pid=1, epoch=3, seq=1, txn=True)


def test_marker_of_tv2_needs_a_higher_epoch_unless_it_is_a_retry(log: PartitionLog) -> None:
    put(log, b"a", pid=1, epoch=3, seq=0, txn=True)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(log, 1, 3, commit=True, version=2)
    end(log, 1, 4, commit=True, version=2)
    assert log.producers.entries[1].batches == []
    end(log, 1, 4, commit=True, version=2)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(log, 1, 3, commit=True, version=2)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        put(log, b"late", pid=1, epoch=3, seq=1, txn=True)


def test_marker_at_the_last_epoch_is_let_through(log: PartitionLog) -> None:
    put(log, b"a", pid=1, epoch=32767, seq=0, txn=True)
    assert end(log, 1, 32767, commit=False, version=2) == 1


def test_marker_of_an_older_coordinator_is_fenced(log: PartitionLog) -> None:
    end(log, 1, 0, commit=True, coordinator=5)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        end(log, 1, 0, commit=True, coordinator=4)


@pytest.mark.parametrize("is_clean", [True, False])
def test_marker_of_an_older_coordinator_is_fenced_after_a_restart(
    make_disk: Callable[..., Disk], is_clean: bool
) -> None:
    disk = make_disk()
    end(disk.open(), 1, 0, commit=True, coordinator=5)
    if is_clean:
        disk.stop()
    else:
        disk.crash()
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        end(disk.open(), 1, 0, commit=True, coordinator=4)


def test_marker_for_an_unknown_producer_is_written_and_makes_an_entry(log: PartitionLog) -> None:
    assert end(log, 9, 2, commit=False) == 0
    assert log.producers.entries[9].last_sequence == -1
    status = next(log.producer_statuses())
    assert (status.producer_id, status.producer_epoch, status.coordinator_epoch) == (9, 2, 0)
    assert len(log.active.txn_index) == 0


def test_plain_batch_in_an_open_transaction_is_refused(log: PartitionLog) -> None:
    put(log, b"a", pid=1, seq=0, txn=True)
    with refused(ErrorCode.INVALID_TXN_STATE):
        put(log, b"b", pid=1, seq=1)


def test_transactional_batch_needs_verification(log: PartitionLog) -> None:
    with refused(ErrorCode.INVALID_TXN_STATE):
        append_as_client(log, batch(b"a", pid=1, seq=0, txn=True), now_ms=NOW_MS, version=11)
    put(log, b"a", pid=1, seq=0, txn=True)
    assert start_verification(log, 1, 1, 0, False) is None
    append_as_client(log, batch(b"b", pid=1, seq=1, txn=True), now_ms=NOW_MS, version=11)
    assert start_verification(log, 1, 0, 1, False) is not None  # of another epoch


def test_verification_may_be_switched_off(make_disk: Callable[..., Disk]) -> None:
    log = make_disk(transaction_partition_verification_enable=False).open()
    append_as_client(log, batch(b"a", pid=1, seq=0, txn=True), now_ms=NOW_MS, version=11)
    assert log.last_stable_offset == 0


def test_marker_between_check_and_append_voids_the_guard(log: PartitionLog) -> None:
    guard = start_verification(log, 1, 0, 0, False)
    end(log, 1, 0, commit=False)
    with refused(ErrorCode.INVALID_TXN_STATE):
        append_as_client(log, batch(b"a", pid=1, seq=0, txn=True), now_ms=NOW_MS, version=11, verification=guard)


def test_guard_of_the_next_tv2_transaction_outlives_the_marker_before_it(log: PartitionLog) -> None:
    put(log, b"a", pid=1, epoch=0, seq=0, txn=True)
    guard = start_verification(log, 1, 0, 1, True)
    end(log, 1, 1, commit=True, version=2)
    append_as_client(log, batch(b"b", pid=1, epoch=1, seq=0, txn=True), now_ms=NOW_MS, version=12, verification=guard)
    assert log.last_stable_offset == 2


def test_lowest_sequence_under_verification_goes_first(log: PartitionLog) -> None:
    start_verification(log, 1, 5, 0, False)
    guard = start_verification(log, 1, 3, 0, False)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append_as_client(log, batch(b"b", pid=1, seq=5, txn=True), now_ms=NOW_MS, version=11, verification=guard)
    append_as_client(log, batch(b"a", pid=1, seq=3, txn=True), now_ms=NOW_MS, version=11, verification=guard)


def test_verification_of_a_newer_epoch_begins_with_its_own_sequence(log: PartitionLog) -> None:
    start_verification(log, 1, 0, 0, False)
    guard = start_verification(log, 1, 5, 1, False)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append_as_client(
            log, batch(b"b", pid=1, epoch=1, seq=6, txn=True), now_ms=NOW_MS, version=11, verification=guard
        )
    append_as_client(log, batch(b"a", pid=1, epoch=1, seq=5, txn=True), now_ms=NOW_MS, version=11, verification=guard)


def test_tv2_producer_without_batches_starts_at_zero(log: PartitionLog) -> None:
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        put(log, b"a", pid=1, epoch=0, seq=3, txn=True, version=12)
    put(log, b"a", pid=2, epoch=0, seq=3, txn=True, version=11)


def test_verification_of_a_stale_epoch_is_refused(log: PartitionLog) -> None:
    put(log, b"a", pid=1, epoch=5, seq=0)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        start_verification(log, 1, 0, 4, False)


def test_broker_batches_of_a_transaction_open_it(log: PartitionLog) -> None:
    data = batch(b"offsets", pid=4, epoch=1, seq=-1, txn=True)
    log.append_batch(data, now_ms=NOW_MS)
    assert log.last_stable_offset == 0
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        log.append_batch(batch(b"offsets", pid=4, epoch=0, seq=-1, txn=True), now_ms=NOW_MS)
    log.append_batch(batch(b"offsets", pid=4, epoch=1, seq=-1, txn=True), now_ms=NOW_MS)
    end(log, 4, 1, commit=True)
    assert log.last_stable_offset == 3


def test_marker_hooks_see_log_producer_and_offset(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    seen: list[tuple[str, int, int, bool, int]] = []
    disk.logs.on_marker.append(
        (None, lambda log, pid, epoch, commit, offset: seen.append((log.name, pid, epoch, commit, offset)))
    )
    put(log, b"a", pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=False)
    assert seen == [("t-0", 1, 0, False, 1)]


@pytest.mark.parametrize("clean", [True, False])
def test_open_transactions_and_aborted_lists_survive_a_restart(make_disk: Callable[..., Disk], clean: bool) -> None:
    disk = make_disk({"segment.bytes": "1048576"})
    log = disk.open()
    for number in range(12):
        for pid in (1, 2, 3):
            put(log, b"z" * 50_000, pid=pid, seq=number, txn=True)
        for pid in (3, 1, 2):
            end(log, pid, 0, commit=(number + pid) % 3 != 0)
    put(log, b"open", pid=2, seq=12, txn=True)
    before = (records(log, isolation=1), log.last_stable_offset, log.read(0, 1, isolation_level=1).aborted)
    indexes = [segment.txn_index.entries() for segment in log.segments]
    disk.stop() if clean else disk.crash()
    log = disk.open()
    assert (records(log, isolation=1), log.last_stable_offset, log.read(0, 1, isolation_level=1).aborted) == before
    assert [segment.txn_index.entries() for segment in log.segments] == indexes
    end(log, 2, 0, commit=True)
    assert log.last_stable_offset == log.log_end_offset


@pytest.mark.parametrize(("kind", "attributes"), [("CreateTime", 0x30), ("LogAppendTime", 0x38)])
@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_whose_time_its_topic_has(
    make_disk: Callable[..., Disk], kind: str, attributes: int, commit: bool
) -> None:
    """Observed on Apache Kafka 4.3.1."""
    log = make_disk({"message.timestamp.type": kind}).open()
    for number in range(2):
        put(log, b"a", pid=1, seq=number, txn=True)
        offset = end(log, 1, 0, commit=commit)
        marker = scan(log.read(offset, 1 << 20).records[0])
        assert (marker.base_offset, marker.attributes, marker.max_timestamp) == (offset, attributes, NOW_MS)
    assert log.last_stable_offset == log.log_end_offset == 4


def test_an_emptied_marker_ends_what_an_older_snapshot_calls_open() -> None:
    producers = Producers("t-0")
    producers.load([ProducerEntry(7, epoch=3, last_timestamp_ms=NOW_MS, txn_first_offset=2)], 5, NOW_MS, 1000)
    assert producers.first_open_offset == 2
    marker = build_marker(7, 4, 0, True, NOW_MS, base_offset=5, leader_epoch=0)
    producers.replay(scan(empty_batch(scan(marker))), None)
    assert producers.first_open_offset == -1
    assert (producers.entries[7].epoch, producers.entries[7].txn_first_offset) == (4, -1)

"""Transactions after a start of which records, batches or the marker are gone: none holds back readers, and none shows
what was aborted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.storage.compacted import COMPACT, clean, keyed
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, put, records, refused


def after_a_transaction(make_disk: Callable[..., Disk]) -> tuple[Disk, PartitionLog]:
    """A log with a segment that has a record of an open transaction alone, and one with five others."""
    disk = make_disk()
    log = disk.open()
    put(log, b"t", pid=1, seq=0, txn=True)
    log.roll(NOW_MS)
    for _ in range(5):
        put(log, b"v")
    return disk, log


def test_a_transaction_of_which_nothing_is_left_does_not_hold_back_readers_after_a_crash(
    make_disk: Callable[..., Disk],
) -> None:
    """DeleteRecords has passed it, and its segment is gone; Kafka 4.3.1's values."""
    disk, log = after_a_transaction(make_disk)
    log.delete_records_before(4)
    log.release_before(4, NOW_MS)
    assert ([segment.base_offset for segment in log.segments], log.last_stable_offset) == ([1], 4)
    for _ in range(2):
        disk.crash()
        log = disk.open()
        assert (log.log_start_offset, log.last_stable_offset, log.log_end_offset) == (4, 6, 6)


def test_an_open_transaction_does_not_outlive_the_deletion_of_all_records_and_a_crash(
    make_disk: Callable[..., Disk],
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"t", pid=1, seq=0, txn=True)
    put(log, b"v")
    log.delete_records_before(2)
    disk.crash()
    log = disk.open()
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)
    put(log, b"later")
    assert log.last_stable_offset == log.log_end_offset == 3


def test_start_inside_a_batch_of_an_open_transaction_keeps_it_open(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", b"b", b"c", pid=1, seq=0, txn=True)
    put(log, b"d")
    log.delete_records_before(1)
    disk.stop()
    for snapshot in disk.partition.glob("*.snapshot"):
        snapshot.write_bytes(b"torn")
    log = disk.open()
    assert (log.log_start_offset, log.last_stable_offset, log.log_end_offset) == (1, 1, 4)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        put(log, b"e", pid=1, seq=4, txn=True)


def test_a_transaction_of_a_snapshot_that_compaction_has_taken_with_its_marker_holds_back_no_reader(
    make_disk: Callable[..., Disk],
) -> None:
    disk = make_disk({**COMPACT, "segment.bytes": "600", "delete.retention.ms": "0"})
    log = disk.open()
    keyed(log, (b"p", b"x" * 400))
    keyed(log, (b"a", b"1"), pid=1, seq=0, txn=True)
    log.roll(NOW_MS)  # with a snapshot in which it is open
    end(log, 1, 0, commit=True)
    keyed(log, (b"a", b"2"), (b"q", b"x" * 300), pid=1, seq=1)
    log.flush()
    disk.checkpoint()
    for _ in range(3):
        keyed(log, (b"a", b"3"))
        clean(disk, log)
        disk.clock.advance(1)
    assert not any(header.is_control for _, header in log.batches(0))
    end_offset = log.log_end_offset
    disk.crash()
    log = disk.open()
    assert log.last_stable_offset == log.log_end_offset == end_offset
    put(log, b"b", pid=1, seq=3, key=b"b", txn=True)
    assert log.last_stable_offset == end_offset


def test_an_aborted_transaction_of_a_snapshot_of_which_compaction_has_left_a_part_stays_hidden(
    make_disk: Callable[..., Disk],
) -> None:
    disk = make_disk({**COMPACT, "segment.bytes": "600", "min.compaction.lag.ms": "1000"})
    log = disk.open()
    keyed(log, (b"a", b"aborted"), pid=1, seq=0, txn=True)
    keyed(log, (b"p", b"x" * 400))
    log.roll(NOW_MS)
    keyed(log, (b"b", b"aborted"), pid=1, seq=1, txn=True, timestamp=NOW_MS + 1000)
    log.roll(NOW_MS)
    keyed(log, (b"q", b"good"))
    log.flush()
    disk.checkpoint()
    end(log, 1, 0, commit=False)
    disk.clock.advance(1500)
    clean(disk, log)
    assert [header.base_offset for _, header in log.batches(0)] == [1, 2, 3, 4]
    disk.crash()
    log = disk.open()
    assert log.last_stable_offset == log.log_end_offset
    assert records(log, 0, isolation=1) == [(1, b"x" * 400), (3, b"good")]


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_transaction_whose_segment_is_gone_does_not_hold_back_readers_after_a_restart(
    make_disk: Callable[..., Disk], is_clean: bool
) -> None:
    """Retention has deleted it, and the start of the log was not stored before the crash."""
    disk, log = after_a_transaction(make_disk)
    log.release_before(1, NOW_MS)
    assert ([segment.base_offset for segment in log.segments], log.log_start_offset) == ([1], 1)
    disk.crash()
    if is_clean:
        disk.open()
        disk.stop()
    log = disk.open()
    assert (log.log_start_offset, log.last_stable_offset, log.log_end_offset) == (1, 6, 6)

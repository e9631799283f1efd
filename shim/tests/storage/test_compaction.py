"""Compaction: what stays, what goes, when; swaps, crashes, choice."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import threading
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.cext.batch import BatchError, scan_all
from kafka_shim.cext.records import build, iterate
from kafka_shim.clock import RealClock
from kafka_shim.errors import KafkaError
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage.candidates import examine
from kafka_shim.storage.cleaner import WATCH_MS, swap
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.throttle import Throttle
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, records
from kafka_shim.turns import at_once

COMPACT = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
DAY_MS = 24 * 3600 * 1000


def keyed(log: PartitionLog, *pairs: tuple[bytes, bytes | None], codec: int = 0, **fields: Any) -> Any:
    """Append one batch of (key, value) records."""
    pid = fields.get("pid", -1)
    data = build(
        [(key, value, fields.get("timestamp", NOW_MS), ((b"h", b"x"),)) for key, value in pairs],
        codec=codec,
        producer_id=pid,
        producer_epoch=fields.get("epoch", 0) if pid >= 0 else -1,
        base_sequence=fields.get("seq", -1),
        transactional=fields.get("txn", False),
    )
    guard = log.start_verification(pid, fields["seq"], fields.get("epoch", 0), False) if fields.get("txn") else None
    return append_as_client(log, data, now_ms=NOW_MS, version=12, verification=guard)


def clean(disk: Disk, log: PartitionLog, *, roll: bool = True) -> None:
    if roll and log.active.size_bytes:
        log.roll(disk.clock.now_ms())
    disk.logs.cleaner.clean_now(log)


def stored(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Every data record in the files: (offset, key, value)."""
    return [
        (record.offset, record.key, record.value)
        for buffer, header in log.batches(0)
        if not header.is_control
        for record in iterate(buffer)
    ]


def headers(log: PartitionLog) -> list[Any]:
    return [header for _, header in log.batches(0)]


@pytest.mark.parametrize("codec", range(5))
def test_the_last_record_of_each_key_stays_at_its_offset(make_disk: Callable[..., Disk], codec: int) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    for number in range(20):
        keyed(log, (b"a", b"a%d" % number), (b"b%d" % (number % 3), b"v%d" % number), codec=codec)
    clean(disk, log)
    assert stored(log) == [(35, b"b2", b"v17"), (37, b"b0", b"v18"), (38, b"a", b"a19"), (39, b"b1", b"v19")]
    assert [header.compression for header in headers(log)] == [codec] * 3
    for buffer, _ in log.batches(0):
        scan_all(buffer)  # checksums and lengths are right
        assert all(record.headers == (("h", b"x"),) and record.timestamp == NOW_MS for record in iterate(buffer))
    assert (log.log_start_offset, log.log_end_offset) == (0, 40)


def test_offsets_in_a_gap_read_the_next_record(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    for number in range(50):
        keyed(log, (b"same", b"v%d" % number))
    clean(disk, log)
    keyed(log, (b"new", b"tail"))
    assert records(log, 7) == [(49, b"v49"), (50, b"tail")]
    disk.crash()
    log = disk.open()
    assert records(log, 7) == [(49, b"v49"), (50, b"tail")]
    disk.stop()
    assert records(disk.open(), 0) == [(49, b"v49"), (50, b"tail")]


def test_untouched_batches_are_copied_byte_for_byte(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    for number in range(30):
        keyed(log, (b"k%d" % number, b"v"), codec=number % 5)
    before = [bytes(buffer) for buffer, _ in log.batches(0)]
    clean(disk, log)
    assert [bytes(buffer) for buffer, _ in log.batches(0)] == before


@pytest.mark.option("topic:delete.retention.ms")
def test_tombstones_stay_until_their_horizon(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "delete.retention.ms": "1000"})
    log = disk.open()
    keyed(log, (b"a", b"1"), (b"b", b"1"))
    keyed(log, (b"a", None))
    keyed(log, (b"z", b"last"))
    clean(disk, log)
    assert stored(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"z", b"last")]
    marked = headers(log)[1]
    assert (marked.has_delete_horizon, marked.base_timestamp) == (True, NOW_MS + 1000)
    tombstone = next(record for buffer, _ in log.batches(2) for record in iterate(buffer))
    assert tombstone.timestamp == NOW_MS
    disk.clock.advance(999)
    keyed(log, (b"c", b"1"))
    clean(disk, log)
    assert (2, b"a", None) in stored(log)
    assert headers(log)[1].base_timestamp == NOW_MS + 1000
    disk.clock.advance(1)
    keyed(log, (b"d", b"1"))
    clean(disk, log)
    assert (2, b"a", None) not in stored(log)


def test_nothing_at_or_above_the_stable_offset_is_touched(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    keyed(log, (b"a", b"2"))
    keyed(log, (b"a", b"open"), pid=1, seq=0, txn=True)
    keyed(log, (b"a", b"4"))
    clean(disk, log)
    assert stored(log) == [(1, b"a", b"2"), (2, b"a", b"open"), (3, b"a", b"4")]
    assert log.last_stable_offset == 2


def test_aborted_records_go_and_their_marker_after_them(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "delete.retention.ms": "1000"})
    log = disk.open()
    keyed(log, (b"a", b"good"))
    keyed(log, (b"a", b"aborted"), pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=False)
    keyed(log, (b"b", b"x"), pid=1, seq=1)
    clean(disk, log)
    assert stored(log) == [(0, b"a", b"good"), (3, b"b", b"x")]
    assert [header.base_offset for header in headers(log) if header.is_control] == [2]
    assert log.segments[0].txn_index.entries() == [(1, 1, 2, 3)]
    # Now no batch of the transaction is left: the marker gets its horizon, then goes.
    keyed(log, (b"c", b"x"))
    clean(disk, log)
    marker = next(header for header in headers(log) if header.is_control)
    assert (marker.has_delete_horizon, marker.base_timestamp) == (True, NOW_MS + 1000)
    assert log.segments[0].txn_index.entries() == []
    disk.clock.advance(1000)
    keyed(log, (b"d", b"x"))
    clean(disk, log)
    assert not any(header.is_control for header in headers(log))


def test_a_transaction_aborted_long_ago_hides_no_later_one_of_its_producer(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"x", b"aborted"), pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=False)
    keyed(log, (b"z", b"last"))
    clean(disk, log)
    keyed(log, (b"a", b"old"))
    keyed(log, (b"a", b"new"), pid=1, seq=1, txn=True)
    end(log, 1, 0, commit=True)
    clean(disk, log)
    assert stored(log) == [(2, b"z", b"last"), (4, b"a", b"new")]


def test_commit_marker_outlives_its_records(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "delete.retention.ms": "0"})
    log = disk.open()
    keyed(log, (b"a", b"1"), pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=True)
    keyed(log, (b"z", b"1"), pid=1, seq=1)
    clean(disk, log)
    assert [header.base_offset for header in headers(log)] == [0, 1, 2]
    keyed(log, (b"a", b"2"))
    clean(disk, log)
    assert [header.base_offset for header in headers(log)] == [1, 2, 3]
    keyed(log, (b"y", b"2"))
    clean(disk, log)
    keyed(log, (b"x", b"2"))
    clean(disk, log)
    assert headers(log)[0].base_offset == 2


def test_last_batch_of_an_active_producer_stays_empty(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"), (b"a", b"2"), pid=1, seq=0)
    keyed(log, (b"a", b"3"), (b"a", b"4"), pid=1, seq=2)
    keyed(log, (b"a", b"5"))
    clean(disk, log)
    kept = headers(log)
    assert [(header.base_offset, header.last_offset, header.record_count) for header in kept] == [(2, 3, 0), (4, 4, 1)]
    assert (kept[0].base_sequence, kept[0].last_sequence) == (2, 3)
    for name in disk.files():
        if name.endswith(".snapshot"):
            (disk.partition / name).unlink()
    disk.crash()
    log = disk.open()
    assert keyed(log, (b"a", b"3"), (b"a", b"4"), pid=1, seq=2).duplicate
    assert keyed(log, (b"a", b"6"), pid=1, seq=4).base_offset == 5


def test_last_marker_of_a_producer_without_batches_keeps_its_epoch(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "delete.retention.ms": "0"})
    log = disk.open()
    keyed(log, (b"a", b"1"), pid=1, epoch=0, seq=0, txn=True)
    end(log, 1, 1, commit=False, version=2)
    for number in range(4):
        keyed(log, (b"z%d" % number, b"x"))
        clean(disk, log)
    assert any(header.is_control and header.producer_epoch == 1 for header in headers(log))
    for name in disk.files():
        if name.endswith(".snapshot"):
            (disk.partition / name).unlink()
    disk.crash()
    with pytest.raises(KafkaError):
        keyed(disk.open(), (b"a", b"late"), pid=1, epoch=0, seq=1)


def test_last_batch_of_the_round_stays_so_that_offsets_go_on(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    keyed(log, (b"a", b"dropped"), pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=False)
    log.producers.entries.clear()
    keyed(log, (b"a", b"newest"), pid=2, seq=0, txn=True)
    end(log, 2, 0, commit=False)
    log.producers.entries.clear()
    clean(disk, log)
    assert headers(log)[-1].next_offset == 5
    disk.crash()
    assert disk.open().log_end_offset == 5


def test_small_segments_are_merged_and_indexes_fit(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "index.interval.bytes": "1000"})
    log = disk.open()
    for number in range(400):
        keyed(log, (b"k%d" % (number % 40), os.urandom(10_000)), timestamp=NOW_MS + number)
    assert len(log.segments) > 3
    clean(disk, log)
    clean(disk, log)  # what fits is judged by the sizes before
    assert len(log.segments) == 2
    assert [offset for offset, _, _ in stored(log)] == list(range(360, 400))
    assert log.segments[0].offset_index.count > 20
    for offset in (0, 361, 380, 399):
        assert records(log, offset)[0][0] == max(offset, 360)
    assert log.offset_for_timestamp(NOW_MS + 100).offset == 360
    assert log.offset_for_timestamp(NOW_MS + 377).offset == 377
    assert log.max_timestamp().offset == 399
    assert [name for name in disk.files() if name.endswith(".log")] == [f"{0:020d}.log", f"{400:020d}.log"]
    assert (disk.path / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 400\n"


def test_compact_and_delete_together(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)})
    log = disk.open()
    keyed(log, (b"a", b"1"))
    keyed(log, (b"a", b"2"))
    clean(disk, log)
    assert stored(log) == [(1, b"a", b"2")]
    assert disk.logs.retain(NOW_MS + DAY_MS + 1) == 1
    assert (log.log_start_offset, stored(log)) == (2, [])


def test_map_that_is_full_ends_the_round_early_and_the_next_goes_on(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT, log_cleaner_dedupe_buffer_size=1)
    log = disk.open()
    for number in range(1500):
        keyed(log, (b"k%d" % number, b"1"))
    for number in range(1500):
        keyed(log, (b"k%d" % number, b"2"))
    log.roll(NOW_MS)
    rounds = 0
    while examine(log, disk.logs.dirs[0].cleaner_offsets.get(("t", 0)), NOW_MS).first_dirty_offset < 3000:
        disk.logs.cleaner.clean_now(log)
        rounds += 1
        assert rounds < 10
    assert rounds > 2
    assert [(key, value) for _, key, value in stored(log)] == [(b"k%d" % number, b"2") for number in range(1500)]


def test_readers_keep_their_views_through_a_swap(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "max.message.bytes": "9000000", "segment.bytes": "16000000"})
    log = disk.open()
    keyed(log, (b"a", b"x" * 6_000_000))
    view = log.read(0, 1).records[0]
    keyed(log, (b"a", b"y"))
    clean(disk, log)
    disk.clock.advance(DAY_MS)
    disk.logs.services.flusher.stop()
    assert next(iterate(view)).value == b"x" * 6_000_000


def test_corrupt_log_is_not_cleaned_over(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    for number in range(10):
        keyed(log, (b"a", b"%d" % number))
    log.roll(NOW_MS)
    path = disk.partition / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(BatchError):
        disk.logs.cleaner.clean_now(log)
    assert path.read_bytes() == content
    assert disk.logs.cleaner.choose(NOW_MS) is None
    assert not [name for name in disk.files() if name.endswith(".cleaned")]


# --- crashes


def crash_states(disk: Disk, log: PartitionLog, tmp: Any) -> list[Any]:
    """The directory as it is after each rename or removal of a swap, and before the first."""
    work = disk.logs.cleaner.begin(examine(log, None, NOW_MS))
    work.run()
    copies = []

    def copy() -> None:
        target = tmp / f"state{len(copies)}"
        shutil.copytree(disk.partition, target)
        copies.append(target)

    copy()
    real_rename, real_unlink = os.rename, os.unlink

    def spy_rename(source: str, target: str, **directories: int | None) -> None:
        real_rename(source, target, **directories)
        copy()

    def spy_unlink(path: str, *, dir_fd: int | None = None) -> None:
        real_unlink(path, dir_fd=dir_fd)
        copy()

    os.rename, os.unlink = spy_rename, spy_unlink  # type: ignore[assignment]
    try:
        for group in work.groups:
            swap(log, group, disk.logs.services)
    finally:
        os.rename, os.unlink = real_rename, real_unlink
    return copies


def test_crash_after_each_step_of_a_swap_shows_the_old_or_the_new_log(
    make_disk: Callable[..., Disk], tmp_path: Any
) -> None:
    disk = make_disk({**COMPACT, "index.interval.bytes": "2000"})
    log = disk.open()
    for number in range(60):
        keyed(log, (b"k%d" % (number % 7), os.urandom(50_000)), pid=1, seq=number, txn=True)
        end(log, 1, 0, commit=number % 4 != 0)
    log.roll(NOW_MS)
    old = stored(log)
    visible = _latest(log)
    states = crash_states(disk, log, tmp_path)
    new = stored(log)
    assert len(new) < len(old)
    disk.crash()
    assert len(states) > 15
    for state in states:
        shutil.rmtree(disk.partition)
        shutil.copytree(state, disk.partition)
        (disk.path / ".kafka_cleanshutdown").unlink(missing_ok=True)
        (disk.path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 120\n")
        log = disk.open()
        assert set(new) <= set(stored(log)) <= set(old)
        assert _latest(log) == visible
        assert log.log_end_offset == 120
        assert log.producers.entries[1].last_sequence == 59
        assert not [name for name in disk.files() if name.endswith((".swap", ".cleaned", ".deleted"))]
        disk.crash()


def _latest(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """What a read_committed reader from the start ends up with."""
    keys = {offset: key for offset, key, _ in stored(log)}
    found: dict[bytes | None, bytes | None] = {}
    for offset, value in records(log, 0, isolation=1):
        found[keys[offset]] = value
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_keep_what_readers_see(make_disk: Callable[..., Disk], seed: int) -> None:
    dice = random.Random(seed)
    disk = make_disk({**COMPACT, "delete.retention.ms": "50", "index.interval.bytes": "300"})
    log = disk.open()
    sequences = dict.fromkeys(range(1, 5), 0)
    open_now: set[int] = set()
    for _ in range(250):
        action = dice.random()
        pid = dice.randrange(1, 5)
        pairs = [
            (b"k%d" % dice.randrange(12), None if dice.random() < 0.15 else os.urandom(dice.randrange(40)))
            for _ in range(dice.randrange(1, 4))
        ]
        codec = dice.choice((0, 0, 1, 2, 3, 4))
        if action < 0.35:
            keyed(log, *pairs, codec=codec)
        elif action < 0.75:
            keyed(log, *pairs, codec=codec, pid=pid, seq=sequences[pid], txn=True)
            sequences[pid] += len(pairs)
            open_now.add(pid)
        elif action < 0.9 and open_now:
            pid = dice.choice(sorted(open_now))
            end(log, pid, 0, commit=dice.random() < 0.6)
            open_now.discard(pid)
        elif action < 0.95:
            disk.clock.advance(dice.randrange(60))
            before = (_latest(log), log.log_end_offset, log.last_stable_offset)
            everything = {record[0]: record for record in stored(log)}
            clean(disk, log)
            assert (_latest(log), log.log_end_offset, log.last_stable_offset) == before
            assert all(everything[record[0]] == record for record in stored(log))
            offsets = [header.base_offset for header in headers(log)]
            assert offsets == sorted(set(offsets))
        else:
            before = (stored(log), log.log_end_offset, log.last_stable_offset, _states(log), _latest(log))
            dice.choice((disk.stop, disk.crash))()
            log = disk.open()
            assert (stored(log), log.log_end_offset, log.last_stable_offset, _states(log), _latest(log)) == before


def _states(log: PartitionLog) -> dict[int, tuple[int, int, int]]:
    return {
        entry.producer_id: (entry.epoch, entry.last_sequence, entry.txn_first_offset)
        for entry in log.producers.entries.values()
    }


# --- choice


@pytest.mark.option("topic:min.cleanable.dirty.ratio")
def test_partition_is_due_above_the_dirty_ratio(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "min.cleanable.dirty.ratio": "0.5"})
    log = disk.open()
    for number in range(20):
        keyed(log, (b"k%d" % number, b"z" * 1000))
    assert disk.logs.cleaner.choose(NOW_MS) is None  # all in the active segment
    log.roll(NOW_MS)
    candidate = disk.logs.cleaner.choose(NOW_MS)
    assert candidate is not None
    assert (candidate.first_dirty_offset, candidate.uncleanable_offset, candidate.ratio) == (0, 20, 1.0)
    disk.logs.cleaner.clean_now(log)
    for number in range(15):
        keyed(log, (b"k%d" % number, b"z" * 1000))
    log.roll(NOW_MS)
    assert disk.logs.cleaner.choose(NOW_MS) is None
    for number in range(6):
        keyed(log, (b"k%d" % number, b"z" * 1000))
    log.roll(NOW_MS)
    assert disk.logs.cleaner.choose(NOW_MS) is not None


@pytest.mark.option("topic:min.compaction.lag.ms")
def test_lags_hold_back_and_push(make_disk: Callable[..., Disk]) -> None:
    lags = {"min.compaction.lag.ms": "1000", "max.compaction.lag.ms": "5000", "min.cleanable.dirty.ratio": "0.99"}
    disk = make_disk({**COMPACT, **lags})
    log = disk.open()
    keyed(log, (b"a", b"1"), timestamp=NOW_MS)
    keyed(log, (b"a", b"2"), timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert examine(log, None, NOW_MS + 999).cleanable_bytes == 0
    assert examine(log, None, NOW_MS + 1000).cleanable_bytes > 0
    disk.logs.cleaner.clean_now(log)
    disk.clock.advance(2000)
    disk.logs.cleaner.clean_now(log)
    assert stored(log) == [(1, b"a", b"2")]
    keyed(log, (b"b", b"1"), timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert examine(log, 2, NOW_MS + 4000).is_due is False
    assert examine(log, 2, NOW_MS + 5001).is_due is True


def test_the_shortest_lag_holds_back_too(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({**COMPACT, "min.compaction.lag.ms": "1"}).open()
    keyed(log, (b"a", b"1"), timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert examine(log, None, NOW_MS).cleanable_bytes == 0
    assert examine(log, None, NOW_MS + 1).cleanable_bytes > 0


@pytest.mark.option("topic:max.compaction.lag.ms")
def test_max_lag_rolls_the_active_segment(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({**COMPACT, "max.compaction.lag.ms": "1000"}).open()
    keyed(log, (b"a", b"1"), timestamp=NOW_MS)
    keyed(log, (b"a", b"2"), timestamp=NOW_MS + 1001)
    assert len(log.segments) == 2


def test_progress_outside_the_log_means_all_is_dirty(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    log.roll(NOW_MS)
    assert examine(log, 77, NOW_MS).first_dirty_offset == 0
    assert examine(log, None, NOW_MS).first_dirty_offset == 0


def test_swap_gives_way_to_retention(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "cleanup.policy": "compact,delete", "retention.ms": "1000"})
    log = disk.open()
    keyed(log, (b"a", b"1"))
    keyed(log, (b"a", b"2"))
    log.roll(NOW_MS)
    work = disk.logs.cleaner.begin(examine(log, None, NOW_MS))
    work.run()
    disk.logs.retain(NOW_MS + 1001)
    disk.logs.cleaner.finish(work, None)
    assert (log.log_start_offset, stored(log)) == (2, [])
    assert not [name for name in disk.files() if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize("event", ["nothing", "crash", "stop", "offline", "deleted"])
def test_what_happens_between_the_groups_of_a_swap_leaves_a_whole_log(
    make_disk: Callable[..., Disk], event: str
) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    latest = {}
    for number in range(9):
        latest[b"k%d" % (number % 4)] = value = b"%d" % number * 350_000
        keyed(log, (b"k%d" % (number % 4), value))
    log.roll(NOW_MS)
    cleaner = disk.logs.cleaner
    work = cleaner.begin(examine(log, None, NOW_MS))
    work.run()
    assert len(work.groups) > 2
    slices = cleaner._finish_in_slices(work, None)
    next(slices)
    left = (".cleaned", ".swap")
    assert [name for name in disk.files() if name.endswith(left)]
    if event == "crash":
        disk.crash()  # `slices` lives on, so that it removes nothing
    elif event == "stop":
        slices.close()
        disk.stop()
    elif event == "offline":
        log.fail(OSError(errno.EIO, "a broken disk"))
        assert disk.logs.reopen_offline()
    elif event == "deleted":
        disk.logs.delete("t", 0)
    if event in ("crash", "stop"):
        log = disk.open()
    else:
        at_once(slices)
        assert cleaner.failures == 0
    if event == "deleted":
        assert not disk.partition.exists()
        return
    assert not [name for name in disk.files() if name.endswith(left)]
    assert {key: value for _, key, value in stored(log)} == latest
    clean(disk, log, roll=False)
    assert {key: value for _, key, value in stored(log)} == latest


def test_deleted_key_stays_deleted_when_retention_removes_a_segment_during_a_round(
    make_disk: Callable[..., Disk],
) -> None:
    disk = make_disk({**COMPACT, "cleanup.policy": "compact,delete", "delete.retention.ms": "1000"})
    log = disk.open()
    for pairs in ([(b"x", b"1")], [(b"k", b"1")], [(b"y", b"z" * 1_048_400)], [(b"k", None)]):
        keyed(log, *pairs)  # type: ignore[arg-type]
        log.roll(NOW_MS)
    work = disk.logs.cleaner.begin(examine(log, None, NOW_MS))
    work.run()
    assert [len(group.sources) for group in work.groups] == [2, 2]
    log.delete_records_before(1)
    assert disk.logs.retain(NOW_MS) == 1
    disk.logs.cleaner.finish(work, None)
    assert not [name for name in disk.files() if name.endswith((".cleaned", ".swap"))]
    assert ("t", 0) not in disk.logs.dirs[0].cleaner_offsets
    for number in range(3):
        disk.clock.advance(2000)
        keyed(log, (b"other", b"%d" % number))
        clean(disk, log)
    latest = {record.key: record.value for buffer, _ in log.batches() for record in iterate(buffer)}
    assert latest.get(b"k") is None


def test_one_partition_that_cannot_be_cleaned_costs_only_itself(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = make_disk(COMPACT)
    logs = [disk.open(), disk.logs.create("u", bytes(16), 0, disk.logs.get("t", 0).config)]
    cleaner = disk.logs.cleaner
    for log in logs:
        for number in range(20):
            keyed(log, (b"a", b"%d" % number))
        log.roll(NOW_MS)

    def broken(log: PartitionLog, *rest: object) -> Any:
        if log is logs[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return examine(log, *rest)  # type: ignore[arg-type]

    async def clean_both() -> None:
        cleaner.schedule()
        disk.clock.advance(15_000)
        async with asyncio.timeout(20):
            while len(stored(logs[1])) > 1:  # noqa: ASYNC110  (a swap wakes nobody)
                await asyncio.sleep(0.005)
            assert len(stored(logs[0])) == 20
            assert [record.levelname for record in caplog.records].count("WARNING") == 1
            monkeypatch.undo()
            while len(stored(logs[0])) > 1:
                await asyncio.sleep(0.005)
                disk.clock.advance(15_000)
        cleaner.stop()

    monkeypatch.setattr("kafka_shim.storage.cleaner.examine", broken)
    asyncio.run(clean_both())


def test_pause_of_a_partition_that_cannot_be_cleaned_grows(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    log.roll(NOW_MS)
    tried_ms: list[int] = []

    def broken(*_: object) -> Any:
        tried_ms.append(disk.clock.monotonic_ms())
        raise ValueError("a damaged index")

    monkeypatch.setattr("kafka_shim.storage.cleaner.examine", broken)
    disk.logs.cleaner.schedule()
    disk.clock.advance(DAY_MS)
    disk.logs.cleaner.stop()
    pauses = [later - earlier for earlier, later in pairwise(tried_ms)]
    assert pauses[:3] == [15_000, 30_000, 60_000]
    assert max(pauses) <= 3600_000 + 15_000


def test_a_look_at_very_many_partitions_lets_other_work_in(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it chose is asked again at the end: it may move, or be gone, by then."""
    monkeypatch.setattr("kafka_shim.storage.cleaner.SLICE", 1)
    disk = make_disk(COMPACT)
    first = disk.open()
    logs = [first, *(disk.logs.create(name, bytes(16), 0, first.config) for name in "uvw")]
    for log in (logs[0], logs[3]):
        for number in range(20):
            keyed(log, (b"a", b"%d" % number))
        log.roll(NOW_MS)
    cleaner = disk.logs.cleaner
    steps = cleaner._choose_in_slices(NOW_MS)
    for _ in range(2):
        assert next(steps) is None
    cleaner.paused.add(logs[0])
    with pytest.raises(StopIteration) as end:
        for _ in range(3):
            next(steps)
    assert end.value.value is None
    candidate = cleaner.choose(NOW_MS)
    assert candidate is not None
    assert candidate.log is logs[3]


def test_to_examine_a_log_costs_each_segment_once(make_disk: Callable[..., Disk]) -> None:
    class Counted(list[Any]):
        looks = 0

        def __iter__(self) -> Any:
            self.looks += 1
            return super().__iter__()

        def __getitem__(self, where: Any) -> Any:
            self.looks += 1
            return super().__getitem__(where)

        def index(self, *what: Any) -> int:
            self.looks += 1
            return super().index(*what)

    asked = ("active", "config", "last_stable_offset", "log_end_offset", "log_start_offset")
    disk = make_disk(COMPACT)
    log = disk.open()
    looks = []
    for count in (5, 50):
        for number in range(count):
            keyed(log, (b"%d" % number, b""))
            log.roll(NOW_MS)
        segments = Counted(log.segments)
        seen: Any = SimpleNamespace(**{name: getattr(log, name) for name in asked}, segments=segments)
        assert examine(seen, None, NOW_MS).cleanable_bytes == sum(one.size_bytes for one in segments[:-1])
        looks.append(segments.looks)
    assert looks[0] == looks[1], "whole passes and slices, as many for ten times the segments"


def test_the_rest_between_two_looks_is_the_option_of_now(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(COMPACT, log_cleaner_backoff_ms=5000)
    disk.open()
    cleaner, clock = disk.logs.cleaner, disk.clock
    looks: list[float] = []

    def look() -> None:
        looks.append(clock.monotonic_ms())
        if len(looks) == 2:
            raise RuntimeError("unexpected")

    monkeypatch.setattr(cleaner, "_look", look)
    cleaner.schedule()
    clock.advance(5000)
    monkeypatch.setattr(disk.logs.services.config, "log_cleaner_backoff_ms", 1000)
    with pytest.raises(RuntimeError):
        clock.advance(5000)
    clock.advance(2000)
    assert [later - earlier for earlier, later in pairwise(looks)] == [5000, 1000, 1000]
    monkeypatch.setattr(disk.logs.services.config, "log_cleaner_backoff_ms", 0)
    clock.advance(1010)
    assert len(looks) > 10
    cleaner.stop()


@pytest.mark.parametrize("step", ["run", "swap", "thread"])
def test_cleaner_goes_on_after_an_unexpected_error(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    for number in range(20):
        keyed(log, (b"a", b"%d" % number))
    log.roll(NOW_MS)
    failed: list[bool] = []

    def broken(*_: object) -> None:
        failed.append(True)
        raise RuntimeError("unexpected")

    points = {
        "run": "kafka_shim.storage.compaction.Round._build_map",
        "swap": "kafka_shim.storage.cleaner.swap",
        "thread": "threading.Thread.start",
    }
    monkeypatch.setattr(points[step], broken)

    async def go_on() -> None:
        disk.logs.cleaner.schedule()
        async with asyncio.timeout(20):
            while not failed:
                await asyncio.sleep(0.005)
                disk.clock.advance(15_000)
            monkeypatch.undo()
            while len(stored(log)) > 1:
                await asyncio.sleep(0.005)
                disk.clock.advance(15_000)
        disk.logs.cleaner.stop()

    asyncio.run(go_on())


def test_timer_cleans_in_a_thread(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT, log_cleaner_backoff_ms=1)
    log = disk.open()
    for number in range(20):
        keyed(log, (b"a", b"%d" % number))
    log.roll(NOW_MS)

    async def wait_for_it() -> None:
        disk.logs.services.clock = RealClock()
        disk.logs.cleaner.schedule()
        async with asyncio.timeout(20):
            while len(stored(log)) > 1:  # noqa: ASYNC110  (a swap wakes nobody)
                await asyncio.sleep(0.005)
        disk.logs.cleaner.stop()
        disk.logs.services.clock = disk.clock

    asyncio.run(wait_for_it())
    assert stored(log) == [(19, b"a", b"19")]
    # The thread ends by itself, a little after the swap that was waited for.
    for thread in threading.enumerate():
        if "cleaner" in thread.name:
            thread.join(20)
            assert not thread.is_alive()


def test_throttle_waits_by_its_rate_and_lets_go_at_a_stop(make_disk: Callable[..., Disk]) -> None:
    clock = RealClock()
    throttle = Throttle(10_000_000, clock)
    started_ms = clock.monotonic_ms()
    throttle.take(1_000_000)
    assert clock.monotonic_ms() - started_ms >= 90
    throttle.stop()
    throttle.take(1_000_000_000)
    assert clock.monotonic_ms() - started_ms < 5000


def test_the_cleaner_looks_again_although_memory_ended_when_its_next_look_was_set(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(COMPACT)
    disk.open()
    cleaner = disk.logs.cleaner
    looks: list[float] = []

    def no_memory(*_: object) -> None:
        raise MemoryError

    cleaner.schedule()
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "after", no_memory)
        with pytest.raises(MemoryError):
            disk.clock.advance(WATCH_MS / 2)
    monkeypatch.setattr(
        "kafka_shim.storage.cleaner.Cleaner._look", lambda self: looks.append(disk.clock.monotonic_ms())
    )
    disk.clock.advance(WATCH_MS)
    assert looks
    disk.stop()

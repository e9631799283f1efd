"""Compaction: what stays and what goes, in logs as they come and in random ones."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from kafka_shim.cext.batch import BatchError, scan_all
from kafka_shim.cext.records import iterate
from kafka_shim.errors import KafkaError
from kafka_shim.storage.candidates import examine
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.storage.compacted import COMPACT, DAY_MS, clean, headers, keyed, latest, stored
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, batch, end, records


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


def test_batches_too_far_above_their_segment_are_compacted(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "index.interval.bytes": "0"})
    log = disk.open()
    keyed(log, (b"a", b"1"))
    path = disk.partition / "00000000000000000000.log"
    disk.crash()
    far = 1 << 31
    raw = b"".join((far + number).to_bytes(8) + batch(b"%d" % number, key=b"k")[8:] for number in range(3))
    path.write_bytes(path.read_bytes() + raw)
    log = disk.open()
    clean(disk, log)
    assert stored(log) == [(0, b"a", b"1"), (far + 2, b"k", b"2")]


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


def test_horizon_may_be_the_greatest_timestamp(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "delete.retention.ms": str(2**63 - 1 - NOW_MS)})
    log = disk.open()
    keyed(log, (b"a", None))
    clean(disk, log)
    assert [(header.has_delete_horizon, header.base_timestamp) for header in headers(log)] == [(True, 2**63 - 1)]
    assert [record.timestamp for buffer, _ in log.batches(0) for record in iterate(buffer)] == [NOW_MS]


def test_what_is_retained_beyond_the_greatest_timestamp_gets_no_horizon(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "delete.retention.ms": str(2**63 - 1)})
    log = disk.open()
    keyed(log, (b"a", b"1"), (b"b", b"1"))
    keyed(log, (b"a", b"2"), (b"b", None))
    keyed(log, (b"a", b"3"))
    keyed(log, (b"c", b"aborted"), pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=False)
    for _ in range(2):
        clean(disk, log)
        assert stored(log) == [(3, b"b", None), (4, b"a", b"3")]
        assert [header.base_offset for header in headers(log) if header.is_control] == [6]
        assert not any(header.has_delete_horizon for header in headers(log))
        disk.clock.advance(DAY_MS)


def test_nothing_from_the_segment_of_the_stable_offset_on_is_touched(make_disk: Callable[..., Disk]) -> None:
    """As in Kafka, only whole segments are cleaned: what is below the bound in its segment stays too."""
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    keyed(log, (b"a", b"2"))
    log.roll(NOW_MS)
    keyed(log, (b"a", b"3"))
    keyed(log, (b"a", b"open"), pid=1, seq=0, txn=True)
    keyed(log, (b"a", b"5"))
    clean(disk, log)
    assert stored(log) == [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"a", b"open"), (4, b"a", b"5")]
    assert log.last_stable_offset == 3
    end(log, 1, 0, commit=True)
    clean(disk, log)
    assert stored(log) == [(4, b"a", b"5")]


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


def test_the_event_loop_reads_no_index_of_transactions_for_a_round(make_disk: Callable[..., Disk]) -> None:
    """A round is made on the event loop, and a start has read none of them. The marker may be in the active segment."""
    disk = make_disk(COMPACT)
    log = disk.open()
    for number in range(3):
        keyed(log, (b"a", b"%d" % number), pid=1, seq=number, txn=True)
        log.roll(NOW_MS)
    end(log, 1, 0, commit=False)
    disk.stop()
    log = disk.open()
    assert disk.logs is not None
    cleaner = disk.logs.cleaner
    work = cleaner.begin(examine(log, None, disk.clock.now_ms()))
    assert not any(segment._txn_index for segment in log.segments)
    work.run()
    cleaner.finish(work, None)
    assert stored(log) == []


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


@pytest.mark.parametrize("codec", [0, 4])
def test_batch_with_more_keys_than_the_map_holds_takes_a_few_rounds(make_disk: Callable[..., Disk], codec: int) -> None:
    disk = make_disk(COMPACT, log_cleaner_dedupe_buffer_size=1)
    log = disk.open()
    for value in (b"1", b"2"):
        keyed(log, *((b"k%d" % number, value) for number in range(1500)), codec=codec)
    log.roll(NOW_MS)
    rounds = 0
    while disk.logs.cleaner.choose(NOW_MS) is not None:
        disk.logs.cleaner.clean_now(log)
        rounds += 1
        assert rounds < 10
    assert rounds == 4  # of 921 keys each
    assert stored(log) == [(1500 + number, b"k%d" % number, b"2") for number in range(1500)]


@pytest.mark.parametrize("seed", range(5))
def test_rounds_of_a_small_map_agree_with_a_model(make_disk: Callable[..., Disk], seed: int) -> None:
    dice = random.Random(seed)
    disk = make_disk(COMPACT, log_cleaner_dedupe_buffer_size=1, log_cleaner_io_buffer_load_factor=0.01)
    log = disk.open()
    for _ in range(40):
        for _ in range(dice.randrange(4)):
            keys = [b"k%d" % dice.randrange(60) for _ in range(dice.randrange(1, 40))]
            keyed(log, *((key, None if dice.random() < 0.2 else b"v") for key in keys), codec=dice.choice((0, 1)))
            if dice.random() < 0.5:
                log.roll(NOW_MS)
        due = disk.logs.cleaner.choose(NOW_MS)
        if due is not None:
            end_offset = _clean_end(log, 10, due.first_dirty_offset, due.uncleanable_offset)
            last = {key: offset for offset, key, _ in stored(log) if due.first_dirty_offset <= offset < end_offset}
            kept = [one for one in stored(log) if one[0] >= end_offset or one[0] >= last.get(one[1], 0)]
            assert disk.logs.cleaner.clean_now(log).end_offset == end_offset > due.first_dirty_offset
            assert stored(log) == kept
            assert disk.logs.dirs[0].cleaner_offsets["t", 0] == end_offset


def _clean_end(log: PartitionLog, capacity: int, first: int, bound: int) -> int:
    """Where a round from `first` to `bound` ends whose map takes `capacity` keys."""
    seen: set[bytes | None] = set()
    end_offset = first
    for buffer, header in log.batches(0):
        for record in iterate(buffer):
            if first <= record.offset < bound:
                if len(seen) == capacity:
                    return end_offset
                seen.add(record.key)
                end_offset = record.offset + 1
        if first < header.next_offset <= bound:
            end_offset = header.next_offset
    return bound


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
            before = (latest(log), log.log_end_offset, log.last_stable_offset)
            everything = {record[0]: record for record in stored(log)}
            clean(disk, log)
            assert (latest(log), log.log_end_offset, log.last_stable_offset) == before
            assert all(everything[record[0]] == record for record in stored(log))
            offsets = [header.base_offset for header in headers(log)]
            assert offsets == sorted(set(offsets))
        else:
            before = (stored(log), log.log_end_offset, log.last_stable_offset, _states(log), latest(log))
            dice.choice((disk.stop, disk.crash))()
            log = disk.open()
            assert (stored(log), log.log_end_offset, log.last_stable_offset, _states(log), latest(log)) == before


def _states(log: PartitionLog) -> dict[int, tuple[int, int, int]]:
    return {
        entry.producer_id: (entry.epoch, entry.last_sequence, entry.txn_first_offset)
        for entry in log.producers.entries.values()
    }

"""Restart after a clean stop, a crash, a torn write, damaged files."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.cext.batch import Batch
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage import names, recovery
from kafka_shim.storage.index import OFFSET_ENTRY, WRITE_CHUNK_BYTES
from kafka_shim.storage.local_log import LocalLog
from kafka_shim.storage.log_files import finish_swaps, list_files
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.recovery import replay_batch
from kafka_shim.storage.segments import Segment
from kafka_shim.storage.txn_index import TxnIndex
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, batch, end, note_syncs, put, records, refused

SEGMENT = {"segment.bytes": "1048576"}
BASE = "00000000000000000000"
EPOCHS = "leader-epoch-checkpoint"
# Bytes of a batch header that its CRC does not cover.
BASE_OFFSET, LEADER_EPOCH = range(8), range(12, 16)


def fill(disk: Disk) -> None:
    """Plain, idempotent and transactional batches over several segments, the last ones small."""
    log = disk.open()
    for number in range(20):
        put(log, os.urandom(100_000), pid=1, seq=number)
        put(log, b"t%d" % number, pid=2, seq=number, txn=True)
        if number % 3 == 0:
            end(log, 2, 0, commit=number % 2 == 0)
    for number in range(5):
        put(log, b"tail%d" % number, pid=3, seq=number)


def state_of(disk: Disk) -> tuple[object, ...]:
    log = disk.logs.get("t", 0)
    return (
        records(log),
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        {
            entry.producer_id: (entry.epoch, entry.last_sequence, entry.txn_first_offset)
            for entry in log.producers.entries.values()
        },
        [segment.txn_index.entries() for segment in log.segments],
        log.epochs.entries,
        [segment.max_timestamp() for segment in log.segments],
    )


@pytest.mark.parametrize("is_flushed", [True, False])
def test_clean_stop_has_on_the_disk_what_a_clean_start_takes_as_it_is(
    make_disk: Callable[..., Disk], is_flushed: bool
) -> None:
    """Also where all records are: without the snapshot an open transaction would be read, and without the index an
    aborted one."""
    disk = make_disk({"flush.messages": "1"} if is_flushed else {})
    log = disk.open()
    put(log, b"aborted", pid=6, seq=0, txn=True)
    end(log, 6, 0, commit=False)
    put(log, b"open", pid=7, seq=0, txn=True)
    if is_flushed:
        log.request_flush().result(timeout=60)
        assert log.recovery_point == 3
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    disk.stop()
    needed = [names.file_name(3, names.SNAPSHOT), *(f"{BASE}{name}" for name in names.SEGMENT_SUFFIXES), EPOCHS]
    assert {str(disk.partition), *(str(disk.partition / name) for name in needed)} <= set(synced)
    synced.clear()
    disk.open()
    disk.stop()
    assert synced == [str(disk.path)], "nothing is new, but that the mark of the clean stop is gone"


def test_the_mark_of_the_clean_stop_is_gone_from_the_disk_before_anything_else_is_on_it(
    make_disk: Callable[..., Disk],
) -> None:
    """A file system may keep what was fsynced and take the removal back. Then nothing would be recovered."""
    disk = make_disk({"flush.messages": "1"})
    disk.open()
    disk.stop()
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    put(disk.open(), b"a").flushed.result(timeout=60)
    assert synced[:2] == [str(disk.path), str(disk.partition / f"{BASE}.log")]


def closed_segment_with_an_abort(disk: Disk) -> None:
    """Three segments on the disk, and an aborted transaction in the second."""
    log = disk.open()
    put(log, os.urandom(600_000))
    put(log, os.urandom(600_000))
    put(log, b"aborted", pid=6, seq=0, txn=True)
    end(log, 6, 0, commit=False)
    put(log, os.urandom(600_000))
    put(log, b"last")
    assert [segment.base_offset for segment in log.segments] == [0, 1, 4]
    log.request_flush().result(timeout=60)
    disk.logs.services.flusher.sync_later([]).result(timeout=60)  # type: ignore[union-attr]
    assert log.recovery_point == 6
    disk.checkpoint()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [names.INDEX, names.TXN_INDEX])
def test_what_a_start_wrote_anew_below_the_recovery_point_is_on_the_disk_at_the_clean_stop(
    make_disk: Callable[..., Disk], clean: bool, suffix: str
) -> None:
    """A clean start takes the indexes as they are: what a power failure left of them would be believed."""
    disk = make_disk(SEGMENT)
    closed_segment_with_an_abort(disk)
    disk.stop() if clean else disk.crash()
    second = f"{1:020d}"
    if suffix == names.INDEX:
        (disk.partition / f"{second}{names.INDEX}").unlink()
    else:
        os.truncate(disk.partition / f"{second}{names.TXN_INDEX}", 0)
    log = disk.open()
    assert len(log.segments[1].txn_index) == 1
    assert log.recovery_point == 1
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    disk.stop()
    needed = {str(disk.partition / f"{second}{name}") for name in (names.INDEX, names.TIME_INDEX, names.TXN_INDEX)}
    assert needed <= set(synced)
    assert disk.open().recovery_point == 6


@pytest.mark.parametrize("suffix", [names.INDEX, names.TIME_INDEX])
def test_an_index_that_was_cut_inside_an_entry_is_made_anew_below_the_recovery_point_too(
    make_disk: Callable[..., Disk], suffix: str
) -> None:
    disk = make_disk({**SEGMENT, "index.interval.bytes": "1"})
    log = disk.open()
    for number in range(30):
        put(log, b"%d" % number)
    log.roll(NOW_MS)
    put(log, b"last")
    log.flush()
    disk.checkpoint()
    index = disk.partition / f"{BASE}{suffix}"
    before = index.read_bytes()
    disk.crash()
    os.truncate(index, len(before) - 1)
    disk.open()
    assert index.read_bytes() == before


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [b"", b"\0" * 34, b"\0" * 35, b"\1" * 34, b"\0\0" + b"\xff" * 32])
def test_a_transaction_index_that_lost_its_entries_is_made_anew_at_any_start(
    make_disk: Callable[..., Disk], clean: bool, content: bytes
) -> None:
    """Kafka looks at it after a clean stop too (LogSegment.sanityCheck). A consumer would read what was aborted."""
    disk = make_disk(SEGMENT)
    closed_segment_with_an_abort(disk)
    before = state_of(disk)
    seen = records(disk.logs.get("t", 0), isolation=1)  # type: ignore[union-attr]
    assert b"aborted" not in [value for _, value in seen]
    disk.stop() if clean else disk.crash()
    (disk.partition / f"{1:020d}{names.TXN_INDEX}").write_bytes(content)
    log = disk.open()
    assert records(log, isolation=1) == seen
    assert state_of(disk) == before


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()])
@pytest.mark.parametrize("suffix", [names.INDEX, names.TXN_INDEX])
def test_a_rebuild_of_indexes_that_was_not_finished_is_done_anew(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, suffix: str, error: BaseException
) -> None:
    """Below the recovery point nothing else says that an index lacks entries. A consumer would read what was
    aborted."""
    disk = make_disk({"segment.bytes": "1048576", "index.interval.bytes": "1"})
    log = disk.open()
    put(log, b"aborted", pid=6, seq=0, txn=True)
    end(log, 6, 0, commit=False)
    for number in range(WRITE_CHUNK_BYTES // OFFSET_ENTRY.size + 10):
        put(log, b"%d" % number)
    for sequence in (1, 2):
        put(log, b"aborted", pid=6, seq=sequence, txn=True)
        last_marker = end(log, 6, 0, commit=False)
    log.roll(NOW_MS)
    put(log, b"last")
    seen, before = records(log, isolation=1), state_of(disk)
    disk.stop()
    index = disk.partition / f"{BASE}{suffix}"
    index.unlink() if suffix == names.INDEX else os.truncate(index, 90)

    def interrupted(log: LocalLog, segment: Segment, batch: Batch, **options: Any) -> object:
        if batch.base_offset == last_marker:
            raise error
        return replay_batch(log, segment, batch, **options)

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.recovery.replay_batch", interrupted)
        with pytest.raises((KafkaError, KeyboardInterrupt)):
            disk.open()
    disk.stop() if isinstance(error, OSError) else disk.crash()
    assert records(disk.open(), isolation=1) == seen
    assert state_of(disk) == before


def test_a_transaction_index_is_whole_if_its_markers_ascend_within_the_segment(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for pid in range(3):
        put(log, b"aborted", pid=pid, seq=0, txn=True)
        end(log, pid, 0, commit=False)
    disk.stop()
    index = disk.partition / f"{BASE}{names.TXN_INDEX}"
    right = index.read_bytes()
    for content in (
        right[34:68] + right[:34],
        right[:34] * 3,
        right[:-1],
        right[:-34] + struct.pack(">hqqqq", 0, 2, 5, 5, 0),
    ):
        index.write_bytes(content)
        disk.open()
        disk.stop()
        assert index.read_bytes() == right


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_back_after_a_restart(make_disk: Callable[..., Disk], clean: bool) -> None:
    disk = make_disk(SEGMENT)
    fill(disk)
    before = state_of(disk)
    disk.stop() if clean else disk.crash()
    disk.open()
    assert state_of(disk) == before


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_recovers_every_partition_after_a_crash_and_loads_none_after_a_clean_stop(
    make_disk: Callable[..., Disk], clean: bool
) -> None:
    disk = make_disk({})
    put(disk.open(), b"a")
    disk.stop() if clean else disk.crash()
    config = BrokerConfig(log_dirs=(str(disk.path),))
    logs = Logs(config, disk.clock, disk.faults)
    logs.open_dirs()
    logs.start(lambda name, partition: (TOPIC_ID, TopicConfig(config, {}), 0))
    assert set(logs.partitions.loaded) == (set() if clean else {("t", 0)})
    logs.stop()


def test_clean_stop_and_crash_recovery_write_the_same_files(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(SEGMENT)
    fill(disk)
    disk.stop()
    clean = {name: (disk.partition / name).read_bytes() for name in disk.files()}
    (disk.path / ".kafka_cleanshutdown").unlink()
    (disk.path / "recovery-point-offset-checkpoint").unlink()
    disk.open()
    disk.stop()
    assert {name: (disk.partition / name).read_bytes() for name in disk.files()} == clean


def test_second_clean_start_touches_nothing(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(SEGMENT)
    fill(disk)
    disk.stop()
    before = {name: (disk.partition / name).stat().st_mtime_ns for name in disk.files()}
    disk.open()
    disk.stop()
    assert {name: (disk.partition / name).stat().st_mtime_ns for name in disk.files()} == before


@pytest.mark.parametrize("clean", [True, False])
def test_tail_torn_at_every_byte_is_cut_at_its_first_bad_batch(make_disk: Callable[..., Disk], clean: bool) -> None:
    """Also after a clean stop: a batch that was appended behind torn bytes was acknowledged, and never read again."""
    disk = make_disk()
    end_life = disk.stop if clean else disk.crash
    log = disk.open()
    ends = []
    for number in range(4):
        put(log, b"v%d" % number, pid=1, seq=number)
        ends.append(log.size_bytes)
    put(log, b"t", pid=2, seq=0, txn=True)
    ends.append(log.size_bytes)
    end(log, 2, 0, commit=False)
    ends.append(log.size_bytes)
    end_life()
    whole = disk.path.with_name("whole")
    shutil.copytree(disk.partition, whole)
    for size in range(ends[2], ends[-1] + 1):
        shutil.rmtree(disk.partition)
        shutil.copytree(whole, disk.partition)
        os.truncate(disk.partition / f"{BASE}.log", size)
        kept = sum(1 for end_position in ends if end_position <= size)
        log = disk.open()
        assert (log.log_end_offset, log.size_bytes) == (kept, ends[kept - 1])
        assert log.last_stable_offset == (4 if kept == 5 else kept)
        assert [value for _, value in records(log)] == [b"v0", b"v1", b"v2", b"v3", b"t"][: min(kept, 5)]
        assert log.producers.entries[1].last_sequence == min(kept, 4) - 1
        assert len(log.active.txn_index) == (1 if kept == 6 else 0)
        put(log, b"next", pid=1, seq=min(kept, 4))
        assert records(log)[-1] == (kept, b"next")
        end_life()


@pytest.mark.parametrize("entry", [(0, 7), (1 << 20, 3)])
def test_an_index_that_leads_into_a_batch_does_not_begin_the_offsets_anew(
    make_disk: Callable[..., Disk], entry: tuple[int, int]
) -> None:
    disk = make_disk()
    log = disk.open()
    for number in range(4):
        put(log, b"v%d" % number)
    disk.stop()
    (disk.partition / f"{BASE}.index").write_bytes(struct.pack(">ii", *entry))
    log = disk.open()
    assert log.log_end_offset == 4
    put(log, b"v4")
    assert records(log) == [(number, b"v%d" % number) for number in range(5)]


def test_flipped_bits_in_the_tail_cut_there(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for number in range(10):
        put(log, b"v%d" % number)
    disk.crash()
    path = disk.partition / f"{BASE}.log"
    content = path.read_bytes()
    batch_bytes = len(content) // 10
    dice = random.Random(7)
    for at in range(5 * batch_bytes, len(content)):
        bit = 1 << dice.randrange(8)
        path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
        log = disk.open()
        damaged, byte = divmod(at, batch_bytes)
        kept, end_offset = damaged, damaged
        if byte in LEADER_EPOCH:
            kept, end_offset = 10, 10  # outside the checksum
        elif byte in BASE_OFFSET:
            # Outside the checksum too. An offset that goes back is noticed, and so is the next batch behind one that
            # goes forward.
            offset = int.from_bytes(content[damaged * batch_bytes :][:8]) ^ bit << 8 * (7 - byte)
            if damaged < offset < 1 << 63:
                kept, end_offset = damaged + 1, offset + 1
        assert (log.log_end_offset, [value for _, value in records(log)]) == (
            end_offset,
            [b"v%d" % number for number in range(kept)],
        ), (damaged, byte, bit)
        disk.crash()


def test_segments_after_a_cut_are_removed(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(SEGMENT)
    log = disk.open()
    for _ in range(30):
        put(log, b"z" * 100_000)
    disk.crash()
    (disk.path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    path = disk.partition / f"{10:020d}.log"
    os.truncate(path, path.stat().st_size - 1)
    log = disk.open()
    assert log.log_end_offset == 19
    assert [segment.base_offset for segment in log.segments] == [0, 10]
    assert f"{20:020d}.log" not in disk.files()
    assert put(log, b"next").base_offset == 19


def test_recovery_starts_at_the_recovery_point(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(SEGMENT)
    log = disk.open()
    for _ in range(30):
        put(log, b"z" * 100_000)
    log.flush()
    disk.checkpoint()
    disk.crash()
    damaged = disk.partition / f"{0:020d}.log"
    content = bytearray(damaged.read_bytes())
    content[500] ^= 1
    damaged.write_bytes(content)
    assert disk.open().log_end_offset == 30


def test_missing_and_torn_indexes_are_rebuilt(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(SEGMENT)
    fill(disk)
    before = state_of(disk)
    disk.stop()
    for name in disk.files():
        if name.endswith(".index"):
            (disk.partition / name).unlink()
        if name.endswith(".timeindex"):
            (disk.partition / name).write_bytes(b"torn")
    disk.open()
    assert state_of(disk)[:5] == before[:5]
    log = disk.logs.get("t", 0)
    assert all(segment.offset_index.count for segment in log.segments if segment.size_bytes > 200_000)
    assert log.max_timestamp().timestamp_ms == NOW_MS


def test_preallocated_zeros_behind_index_entries_are_no_entries(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for number in range(100):
        put(log, b"z" * 5000, timestamp=NOW_MS + number)
    entries = (log.active.offset_index.count, log.active.time_index.count)
    disk.stop()
    for suffix, preallocated in ((".index", 10485760), (".timeindex", 10485756)):
        os.truncate(disk.partition / (BASE + suffix), preallocated)
    log = disk.open()
    assert (log.active.offset_index.count, log.active.time_index.count) == entries
    assert len(records(log)) == 100
    assert log.offset_for_timestamp(NOW_MS + 77).offset == 77


def test_bad_snapshots_are_dropped_and_the_state_replayed(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(SEGMENT)
    fill(disk)
    before = state_of(disk)
    disk.crash()
    for name in disk.files():
        if name.endswith(names.SNAPSHOT):
            (disk.partition / name).write_bytes(b"\0\1garbage")
    disk.open()
    assert state_of(disk) == before


@pytest.mark.parametrize("lives", [1, 2])
def test_snapshot_of_batches_that_a_power_cut_has_taken_is_not_used(make_disk: Callable[..., Disk], lives: int) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"aborted", pid=6, seq=0, txn=True)
    put(log, b"a", pid=5, seq=0)
    log.flush()
    disk.checkpoint()
    whole_bytes = log.active.size_bytes
    put(log, b"b", pid=5, seq=1)
    end(log, 6, 0, commit=False)
    log.roll(NOW_MS)
    for _ in range(lives):
        disk.crash()
        os.truncate(disk.partition / f"{0:020d}.log", whole_bytes)
        log = disk.open()
        log.flush()
        disk.checkpoint()
    assert (log.log_end_offset, log.last_stable_offset) == (4, 0)
    again = put(log, b"b", pid=5, seq=1)
    assert (again.duplicate, again.base_offset) == (False, 4)
    end(log, 6, 0, commit=False)
    assert [value for _, value in records(log, isolation=1)] == [b"a", b"b"]


@pytest.mark.parametrize("kills", [0, 1])
def test_snapshots_that_a_recovery_writes_anew_are_on_the_disk_with_the_next_flush(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    disk = make_disk()
    log = disk.open()
    for number in range(3):
        put(log, b"a", pid=5, seq=number)
        log.roll(NOW_MS)
    put(log, b"a", pid=5, seq=3)
    expected = [name for name in disk.files() if name.endswith(names.SNAPSHOT)]
    disk.crash()
    for _ in range(kills):  # before the first segment is read
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(recovery._Loader, "recover_segments", raise_interrupt)
            disk.open()
        disk.crash()
    log = disk.open()
    assert [name for name in disk.files() if name.endswith(names.SNAPSHOT)] == expected
    synced = note_syncs(disk)
    log.flush()
    assert str(disk.partition / names.file_name(3, names.SNAPSHOT)) in synced


def raise_interrupt(_: object, files: object) -> None:
    raise KeyboardInterrupt


def test_snapshots_ahead_of_the_log_are_dropped(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0)
    disk.stop()
    shutil.copy(disk.partition / f"{1:020d}.snapshot", disk.partition / f"{500:020d}.snapshot")
    (disk.path / ".kafka_cleanshutdown").unlink()
    disk.open()
    assert [name for name in disk.files() if name.endswith(names.SNAPSHOT)] == [f"{1:020d}.snapshot"]


def test_log_below_its_start_offset_begins_anew_there(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for _ in range(5):
        put(log, b"a")
    log.delete_records_before(4)
    disk.crash()
    os.truncate(disk.partition / f"{BASE}.log", 0)
    log = disk.open()
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    disk.stop()
    log = disk.open()
    assert (log.log_start_offset, log.log_end_offset) == (4, 4), "also after a start that nothing was appended in"
    assert put(log, b"b").base_offset == 4


def test_leader_epochs_are_found_again_in_the_batches(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    log.leader_epoch = 3
    put(log, b"b")
    disk.crash()
    (disk.partition / "leader-epoch-checkpoint").write_text("nonsense\n")
    assert disk.open().epochs.entries == [(0, 0), (3, 1)]


def test_index_without_a_log_is_removed(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.stop()
    (disk.partition / f"{77:020d}.index").write_bytes(b"\0" * 8)
    disk.open()
    assert f"{77:020d}.index" not in disk.files()


# --- interrupted swaps


def test_undecided_swap_is_undone_and_decided_one_is_finished(make_disk: Callable[..., Disk], tmp_path: Path) -> None:
    disk = make_disk(SEGMENT)
    log = disk.open()
    for _ in range(30):
        put(log, b"z" * 100_000)
    disk.stop()
    before = set(disk.files())
    undecided = tmp_path / "undecided"
    shutil.copytree(disk.partition, undecided)
    for suffix in names.SEGMENT_SUFFIXES[:3]:
        shutil.copy(undecided / f"{BASE}{suffix}", undecided / f"{BASE}{suffix}.cleaned")
    (undecided / f"{BASE}.log.deleted").write_bytes(b"old")
    assert set(finish_swaps(str(undecided), list_files(str(undecided)))) == before

    decided = tmp_path / "decided"
    shutil.copytree(disk.partition, decided)
    for suffix in names.SEGMENT_SUFFIXES[:3]:  # one segment replaces the first two
        (decided / f"{BASE}{suffix}.swap").write_bytes(
            (decided / f"{0:020d}{suffix}").read_bytes() + (decided / f"{10:020d}{suffix}").read_bytes()
        )
    left = set(finish_swaps(str(decided), list_files(str(decided))))
    assert {name for name in left if name.endswith(".log")} == {f"{0:020d}.log", f"{20:020d}.log"}
    assert not any(name.endswith(names.SWAP) for name in left)


def test_a_kill_while_an_undecided_swap_is_undone_leaves_the_old_files(
    make_disk: Callable[..., Disk], tmp_path: Path
) -> None:
    """The index of a new segment would lead into the middle of the batches of the old one."""
    disk = make_disk(SEGMENT)
    for number in range(30):
        put(disk.open() if not number else disk.logs.get("t", 0), b"z" * 100_000)  # type: ignore[union-attr]
    disk.stop()
    before = {name: (disk.partition / name).read_bytes() for name in disk.files()}
    for suffix, made in [(names.INDEX, names.SWAP), (names.TIME_INDEX, names.CLEANED), (names.LOG, names.CLEANED)]:
        (disk.partition / f"{BASE}{suffix}{made}").write_bytes(b"new")
    for steps in range(3):
        killed = tmp_path / f"killed{steps}"
        shutil.copytree(disk.partition, killed)
        # As a file system may list them.
        files = dict(sorted(list_files(str(killed)).items(), key=lambda one: one[0].endswith(names.SWAP)))
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, "unlink", killed_after(steps, os.unlink))
            finish_swaps(str(killed), files)
        finish_swaps(str(killed), list_files(str(killed)))
        assert {path.name: path.read_bytes() for path in killed.iterdir()} == before


def killed_after(steps: int, right: Callable[[str], None]) -> Callable[[str], None]:
    """What does as many steps as the kill leaves time for."""
    left = iter(range(steps))

    def step(path: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        right(path)

    return step


# --- real kills

WRITER = """
import sys
from kafka_shim.clock import RealClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.faults import Faults
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.storage.conftest import TOPIC_ID, batch, NOW_MS
config = BrokerConfig(log_dirs=(sys.argv[1],))
topic = TopicConfig(config, {"segment.bytes": "1048576", "index.interval.bytes": "500"})
logs = Logs(config, RealClock(), Faults.from_environment())
logs.open_dirs()
logs.start(lambda name, partition: (TOPIC_ID, topic, 0))
log = logs.create("t", TOPIC_ID, 0, topic)
sequence = log.log_end_offset
while True:
    append_as_client(log, batch(b"%d" % sequence + b"z" * 3000, pid=1, seq=sequence), now_ms=NOW_MS, version=12)
    print(sequence, flush=True)
    sequence += 1
"""


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("log.before_write", 40),
        ("log.after_write", 1),
        ("log.after_write", 77),
        ("log.after_append", 400),
        ("log.before_roll", 1),
        ("log.after_roll", 1),
        ("log.after_roll", 2),
    ],
)
def test_killed_at_a_point_of_the_append_loses_nothing_acknowledged(
    make_disk: Callable[..., Disk], point: str, nth: int
) -> None:
    disk = make_disk(SEGMENT)
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(disk.path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KAFKA_SHIM_FAULTS": f"{point}=kill@{nth}"},
        cwd=Path(__file__).parents[3],
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    acknowledged = len(done.stdout.splitlines())
    log = disk.open()
    found = records(log)
    # What was being appended may be there or not; what was answered must be.
    assert acknowledged <= log.log_end_offset <= acknowledged + 1
    assert [int((value or b"").split(b"z")[0]) for _, value in found] == list(range(log.log_end_offset))
    assert put(log, b"next", pid=1, seq=log.log_end_offset).base_offset == len(found)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_killed_at_any_moment_loses_nothing_acknowledged(make_disk: Callable[..., Disk]) -> None:
    """30 lives of one directory, each ended by SIGKILL at a random moment, over segments that roll every 0.2 s or
    so."""
    disk = make_disk(SEGMENT)
    dice = random.Random(11)
    acknowledged = 0
    for _ in range(30):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(disk.path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        ) as writer:
            assert writer.stdout is not None
            for _ in range(dice.randrange(1, 1500)):
                acknowledged = int(writer.stdout.readline()) + 1
            writer.kill()
            rest = writer.stdout.read().split("\n")[:-1]
            acknowledged = int(rest[-1]) + 1 if rest else acknowledged
        log = disk.open()
        assert acknowledged <= log.log_end_offset <= acknowledged + 1
        assert log.producers.entries[1].last_sequence == log.log_end_offset - 1
        at = max(0, acknowledged - 2000)
        found = [int((value or b"").split(b"z")[0]) for _, value in records(log, at)]
        assert found == list(range(at, log.log_end_offset))
        disk.crash()


def test_batch_stays_whole_when_the_copy_is_older_than_the_index(make_disk: Callable[..., Disk]) -> None:
    """An index that was stored at a roll may point behind a log that a power loss cut."""
    disk = make_disk({"index.interval.bytes": "0"})
    log = disk.open()
    for number in range(50):
        put(log, b"v%d" % number)
    log.active.store_indexes()
    size = log.size_bytes
    disk.crash()
    os.truncate(disk.partition / f"{BASE}.log", size // 2)
    log = disk.open()
    assert [value for _, value in records(log)] == [b"v%d" % number for number in range(log.log_end_offset)]
    assert all(
        log.active.offset_index.at(number)[1] < log.size_bytes for number in range(log.active.offset_index.count)
    )
    assert len(batch(b"v0")) * (log.log_end_offset - 1) < size


@pytest.mark.parametrize("failing", ["remove", "rebuilt"])
def test_what_interrupts_a_recovery_that_cuts_leaves_no_hole_in_the_log(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A segment that is cut looks whole to the next recovery, which would keep those behind it."""
    disk = make_disk(SEGMENT)
    log = disk.open()
    for _ in range(40):
        put(log, b"z" * 100_000)
    assert [segment.base_offset for segment in log.segments] == [0, 10, 20, 30]
    disk.crash()
    (disk.path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    path = disk.partition / f"{10:020d}.log"
    os.truncate(path, path.stat().st_size - 1)
    owner = TxnIndex if failing == "rebuilt" else Segment
    real, calls = getattr(owner, failing), []

    def fail(*arguments: Any, **named: Any) -> Any:
        calls.append(0)
        if len(calls) == 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, failing, fail)
        log = disk.open()  # at the second attempt
    assert len(calls) >= 2
    assert log.log_end_offset == 19
    assert [offset for offset, _ in records(log)] == list(range(19))
    assert put(log, b"next").base_offset == 19


def old_message(magic: int, offset: int, value: bytes) -> bytes:
    """A message of the format before Kafka 0.11: offset, size, CRC, magic, attributes, time (magic 1), key, value."""
    time = struct.pack(">q", NOW_MS) if magic else b""
    rest = struct.pack(">bb", magic, 0) + time + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(rest), zlib.crc32(rest)) + rest


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_an_old_format_are_left_as_they_are(
    make_disk: Callable[..., Disk], clean: bool, magic: int
) -> None:
    """A topic that nobody has written for years, in the directory of an Apache Kafka, which reads it."""
    disk = make_disk()
    put(disk.open(), b"a")
    (disk.stop if clean else disk.crash)()
    content = b"".join(old_message(magic, offset, b"v%d" % offset) for offset in range(5))
    path = disk.partition / f"{0:020d}.log"
    path.write_bytes(content)
    for _ in range(2):
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            disk.open()
        assert path.read_bytes() == content
        disk.stop()


def test_garbage_that_looks_like_an_old_message_is_cut(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.crash()
    path = disk.partition / f"{0:020d}.log"
    content = path.read_bytes()
    whole = old_message(1, 1, b"v")
    for garbage in (whole[:-1], whole[:-1] + b"w", whole[:17]):
        path.write_bytes(content + garbage)
        assert disk.open().log_end_offset == 1
        assert path.read_bytes() == content
        disk.crash()


@pytest.mark.parametrize("ended", ["stop", "crash"])
@pytest.mark.parametrize("left", [None, "", "0\n3\n0 0\n1 "])
def test_lost_leader_epochs_are_read_from_the_batches(
    make_disk: Callable[..., Disk], ended: str, left: str | None
) -> None:
    """Those below the recovery point too, whose segments are not scanned."""
    disk = make_disk({"internal.segment.bytes": "400"})
    log = disk.open()
    for number in range(20):
        log.leader_epoch = number // 7
        put(log, b"x" * 60)
    log.flush()
    disk.checkpoint()
    assert len(log.segments) > 5
    expected = [(0, 0), (1, 7), (2, 14)]
    assert log.epochs.entries == expected
    getattr(disk, ended)()
    file = disk.partition / EPOCHS
    if left is None:
        file.unlink()
    else:
        file.write_text(left)
    log = disk.open()
    assert log.epochs.entries == expected
    assert (log.earliest().leader_epoch, log.end_offset_for_epoch(1)) == (0, (1, 14))
    disk.stop()
    assert disk.open().epochs.entries == expected


def test_a_full_disk_keeps_no_partition_from_its_readers_whose_leader_epochs_are_lost(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    disk = make_disk({"internal.segment.bytes": "400"})
    log = disk.open()
    for _ in range(20):
        put(log, b"x" * 60)
    disk.stop()
    (disk.partition / EPOCHS).unlink()
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.epochs.LeaderEpochs.save", refuse)
        log = disk.open()
        assert (log.log_end_offset, log.epochs.entries) == (20, [(0, 0)])
    disk.stop()
    assert (disk.partition / EPOCHS).exists()

"""Restart after a clean stop, a crash, a torn write, damaged files."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.storage import names, recovery
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.segments import Segment
from kafka_shim.storage.txn_index import TxnIndex
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, batch, end, note_syncs, put, records
from kafka_shim.tests.storage.restarted import BASE, EPOCHS, SEGMENT, fill, state_of

# Bytes of a batch header that its CRC does not cover.
BASE_OFFSET, LEADER_EPOCH = range(8), range(12, 16)


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

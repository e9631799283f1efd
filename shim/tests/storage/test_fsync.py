"""The fsyncs of a partition: which files they cover, who waits for them, and what a failed one proves."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.storage import checkpoint, names, recovery
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, note_syncs, put, records, refused

# Set before a write that is looked for: kernels before 6.13 take the time of one from their last tick, so that two
# within some milliseconds have the same.
LONG_AGO = (0, 0)


def test_failed_sync_is_made_good_by_writing_the_bytes_again(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    disk.faults.arm("log.before_fsync", "oserror", "ENOSPC")
    with pytest.raises(OSError, match="No space"):
        put(log, b"a").flushed.result(timeout=60)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b")
    disk.faults.disarm()
    os.utime(log.active.path(".log"), LONG_AGO)
    assert disk.logs.reopen_offline()
    assert os.stat(log.active.path(".log")).st_mtime > LONG_AGO[1], "the kernel takes lost pages for written"
    put(log, b"c").flushed.result(timeout=60)
    assert (log.recovery_point, records(log)) == (2, [(0, b"a"), (1, b"c")])


@pytest.mark.option("topic:flush.messages")
def test_flush_messages_gives_a_future_that_is_done_after_the_sync(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "3"})
    log = disk.open()
    assert put(log, b"a", b"b").flushed is None
    appended = put(log, b"c")
    appended.flushed.result(timeout=60)
    assert log.recovery_point == 3
    assert put(log, b"d").flushed is None


def test_a_retry_waits_for_the_disk_as_its_first_attempt_does(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    may_sync = threading.Event()
    disk.faults.arm("log.before_fsync", lambda **_: may_sync.wait(60))
    put(log, b"a", pid=1, seq=0)
    retry = put(log, b"a", pid=1, seq=0)
    assert retry.duplicate
    assert not retry.flushed.done()
    may_sync.set()
    retry.flushed.result(timeout=60)
    assert put(log, b"a", pid=1, seq=0).flushed is None, "it is on the disk already"


def test_a_sync_that_fails_for_nobody_is_found_by_the_next_batch(make_disk: Callable[..., Disk]) -> None:
    """No batch waits for its fsync unless `flush.messages` says so, and plain ones take the fast path."""
    disk = make_disk()
    log = disk.open()
    for sequence in range(2):
        put(log, b"a", pid=1, seq=sequence)
    disk.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    with pytest.raises(OSError, match="Input/output"):
        log.request_flush().result(timeout=60)
    disk.faults.disarm()  # the fast path is only taken without
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"a", pid=1, seq=2)
    assert log.log_end_offset == 2
    assert disk.logs.reopen_offline()
    assert put(log, b"a", pid=1, seq=2).base_offset == 2


def test_failed_sync_is_the_futures_error(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    disk.faults.arm("log.before_fsync", "oserror", "EIO")
    with pytest.raises(OSError, match="Input/output") as caught:
        put(log, b"a").flushed.result(timeout=60)
    assert caught.value.errno == errno.EIO
    assert log.recovery_point == 0
    disk.faults.disarm()
    # The kernel tells of lost pages once: a later sync that succeeds proves nothing.
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b")
    disk.stop()
    assert not (disk.path / ".kafka_cleanshutdown").exists()


class TwoSyncs:
    """A log with two records, each with its fsync. The first is under way, and will fail when it is `released`; then
    the second begins, and will succeed when that is."""

    def __init__(self, disk: Disk) -> None:
        self.begun = [threading.Event() for _ in range(2)]
        self.released = [threading.Event() for _ in range(2)]
        self._calls = 0
        self.log = log = disk.open()
        disk.faults.arm("log.before_fsync", self._sync, where={"path": log.active.path(".log")})
        self.first = put(log, b"a").flushed
        assert self.begun[0].wait(60)
        self.second = put(log, b"b").flushed

    def _sync(self, path: str) -> None:
        number = self._calls
        self._calls += 1
        if number < 2:
            self.begun[number].set()
            assert self.released[number].wait(60)
        if number == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def require_whole(self) -> None:
        """After the log was opened again: nothing was lost, and the next fsync covers all."""
        put(self.log, b"c").flushed.result(timeout=60)
        assert (self.log.recovery_point, records(self.log)) == (3, [(0, b"a"), (1, b"b"), (2, b"c")])


def test_a_sync_after_a_failed_one_declares_nothing_durable(make_disk: Callable[..., Disk]) -> None:
    """Linux reports lost pages once: the second fsync succeeds without those that the first lost."""
    disk = make_disk({"flush.messages": "1"})
    syncs = TwoSyncs(disk)
    for event in syncs.released:
        event.set()
    for future in (syncs.first, syncs.second):
        with pytest.raises(OSError, match=r"Input/output|earlier fsync"):
            future.result(timeout=60)
    assert syncs.log.recovery_point == 0
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        syncs.log.read(0, 100)
    assert disk.logs.reopen_offline()
    syncs.require_whole()


def test_a_sync_that_outlives_a_reopening_declares_nothing_durable(make_disk: Callable[..., Disk]) -> None:
    """It may have begun before the lost bytes were written again."""
    disk = make_disk({"flush.messages": "1"})
    syncs = TwoSyncs(disk)
    syncs.released[0].set()
    with pytest.raises(OSError, match="Input/output"):
        syncs.first.result(timeout=60)
    assert syncs.begun[1].wait(60)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        syncs.log.read(0, 100)
    assert disk.logs.reopen_offline()
    syncs.released[1].set()
    with pytest.raises(OSError, match="an earlier fsync failed"):
        syncs.second.result(timeout=60)
    assert (syncs.log.recovery_point, syncs.log.is_offline) == (0, False)
    syncs.require_whole()


def test_a_sync_that_fails_during_a_reopening_keeps_the_partition_offline(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes were written again before it, so it may have dropped them once more."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
    load = recovery.load

    def load_and_fail_a_sync(*arguments: Any) -> None:
        load(*arguments)
        with pytest.raises(OSError, match="Input/output"):
            log.request_flush().result(timeout=60)

    disk.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.recovery.load", load_and_fail_a_sync)
        assert not disk.logs.reopen_offline()
    assert (log.is_offline, log.recovery_point) == (True, 0)
    assert log.sync_error is not None
    disk.faults.disarm()
    os.utime(log.active.path(".log"), LONG_AGO)
    assert disk.logs.reopen_offline()
    assert os.stat(log.active.path(".log")).st_mtime > LONG_AGO[1], "the bytes are written again"
    log.request_flush().result(timeout=60)
    assert (log.recovery_point, records(log)) == (1, [(0, b"a")])


def test_a_sync_that_fails_as_the_partition_comes_back_is_found_at_its_next_use(
    make_disk: Callable[..., Disk],
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
    before = log.sync_round
    disk.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    with pytest.raises(OSError, match="Input/output"):
        log.request_flush().result(timeout=60)
    log.came_back(before)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b")
    assert log.is_offline
    assert disk.logs.reopen_offline()
    assert records(log) == [(0, b"a")]


def test_sync_without_a_descriptor_concerns_its_own_request_alone(
    make_disk: Callable[..., Disk], caplog: pytest.LogCaptureFixture
) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    disk.faults.arm("log.before_fsync", "oserror", "EMFILE")
    with pytest.raises(OSError, match="open files"):
        put(log, b"a").flushed.result(timeout=60)
    disk.faults.disarm()
    caplog.clear()
    for _ in range(3):
        put(log, b"b").flushed.result(timeout=60)
        log.latest()
    assert log.recovery_point == 4
    assert not caplog.records


def test_a_closed_segment_whose_sync_had_no_descriptor_is_synced_by_the_next_one(
    make_disk: Callable[..., Disk],
) -> None:
    """The recovery point passes it then: after a power cut nobody would look at it."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    first = log.active.path(".log")
    disk.faults.arm("log.before_fsync", "oserror", "EMFILE", where={"path": first})
    log.roll(NOW_MS)
    put(log, b"b")
    disk.logs.services.flusher.run(lambda: None)
    disk.logs.services.flusher.stop()
    assert (log.recovery_point, log.is_offline) == (0, False)
    synced = note_syncs(disk)
    log.roll(NOW_MS)
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 2
    assert first in synced


def test_flush_after_a_roll_syncs_the_indexes_of_a_segment_whose_records_were_flushed(
    make_disk: Callable[..., Disk],
) -> None:
    """The recovery point passes it then. After a power cut a lost index would give read_committed consumers what was
    aborted."""
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    put(log, b"aborted", pid=7, seq=0, txn=True)
    end(log, 7, 0, commit=False)
    log.request_flush().result(timeout=60)
    index = log.active.path(names.TXN_INDEX)
    disk.faults.arm("log.before_fsync", "oserror", "EMFILE", where={"path": index}, nth=1)
    log.roll(NOW_MS)
    disk.logs.services.flusher.stop()
    assert (log.recovery_point, log.is_offline) == (2, False)
    synced = note_syncs(disk)
    put(log, b"b").flushed.result(timeout=60)
    assert log.recovery_point == 3
    assert {index, str(disk.partition / names.file_name(2, names.SNAPSHOT))} <= set(synced)


def test_power_cut_as_a_flushed_segment_is_rolled_shows_no_aborted_record(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    synced = note_syncs(disk)
    put(log, b"aborted", pid=6, seq=0, txn=True)
    end(log, 6, 0, commit=False)
    log.flush()
    disk.checkpoint()
    index = log.active.path(names.TXN_INDEX)
    monkeypatch.setattr(disk.logs.services.flusher, "sync_later", lambda *_: None)  # the disk is slow
    log.roll(NOW_MS)
    disk.crash()
    if not {index, os.path.dirname(index)} <= set(synced):
        os.unlink(index)
    assert records(disk.open(), isolation=1) == []


def test_roll_syncs_the_closed_segment_off_the_loop(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"segment.bytes": "1048576"})
    log = disk.open()
    synced = note_syncs(disk)
    for _ in range(11):
        put(log, b"z" * 100_000)
    disk.logs.services.flusher.stop()
    closed = [f"{log.directory}/{0:020d}.log", f"{log.directory}/{10:020d}.snapshot", log.directory]
    assert set(closed) <= set(synced)
    assert log.recovery_point == 10


def test_the_name_of_a_new_segment_is_synced_with_its_first_records(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    synced = note_syncs(disk)
    for roll in (False, True):
        if roll:
            log.roll(NOW_MS)
            disk.logs.services.flusher.sync_later([]).result(60)
        for expected in (1, 0):
            synced.clear()
            put(log, b"a").flushed.result(timeout=60)
            assert synced.count(log.directory) == expected


def test_rolls_that_a_slow_disk_does_not_keep_up_with_request_each_segment_once(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    may_sync, synced = threading.Event(), []

    def reach(path: str) -> None:
        may_sync.wait(60)
        synced.append(os.path.basename(path))

    disk.faults.arm("log.before_fsync", reach)
    for _ in range(10):
        put(log, b"a")
        log.roll(NOW_MS)
    # Who waits gets what is to be synced before it too, and does not wait for the rolls.
    put(log, b"a")
    flushed = log.request_flush()
    may_sync.set()
    flushed.result(60)
    assert log.recovery_point == 11
    assert f"{10:020d}.snapshot" in synced
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 11
    logs = [name for name in synced if name.endswith(".log")]
    assert set(logs) == {f"{offset:020d}.log" for offset in range(11)}
    # By its roll, and by the one who waited if that came later.
    assert max(map(logs.count, logs)) <= 2


def test_wishes_of_one_group_sync_a_file_once(make_disk: Callable[..., Disk], tmp_path: Path) -> None:
    disk = make_disk()
    disk.open()
    flusher = disk.logs.services.flusher
    (tmp_path / "f").write_text("x")
    synced = note_syncs(disk)
    futures = []
    wished = threading.Event()

    def wish() -> None:
        futures.extend(flusher.sync([str(tmp_path / "f")]) for _ in range(5))
        wished.set()

    flusher.run(wish)
    # What is wished after the stop is nobody's.
    assert wished.wait(60)
    flusher.stop()
    assert [future.result(timeout=60) for future in futures] == [None] * 5
    assert len(synced) == 1


def test_a_failed_sync_in_the_background_is_not_clean_at_the_stop(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    disk.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    failed, later = log.request_flush(), log.request_flush()
    with pytest.raises(OSError, match="Input/output"):
        failed.result(timeout=60)
    with contextlib.suppress(OSError):
        later.result(timeout=60)
    assert log.recovery_point == 0
    disk.stop()
    assert not (disk.path / ".kafka_cleanshutdown").exists()


def test_log_start_offsets_that_delete_records_wrote_are_fsynced_in_the_background(
    make_disk: Callable[..., Disk],
) -> None:
    """The file has those of all partitions, also where they were on the disk for long."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    synced = note_syncs(disk)
    log.delete_records_before(1)
    disk.logs.services.flusher.sync_later([]).result(timeout=60)  # type: ignore[union-attr]
    assert synced == [str(disk.path / checkpoint.LOG_START_OFFSETS)]


@pytest.mark.parametrize("clean", [False, True])
def test_flush_ms_holds_for_what_a_recovery_found(make_disk: Callable[..., Disk], clean: bool) -> None:
    """Acknowledged before a kill, and not on the disk: it need not wait for the next append."""
    disk = make_disk({"flush.ms": "5000"})
    put(disk.open(), b"a")
    (disk.stop if clean else disk.crash)()
    log = disk.open()
    assert log.recovery_point == int(clean)
    assert disk.logs is not None
    assert disk.logs.flush_due(disk.clock.now_ms() + 4999) == 0
    assert disk.logs.flush_due(disk.clock.now_ms() + 5000) == int(not clean)
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 1


def test_flush_ms_holds_for_plain_batches_behind_an_fsync(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.ms": "5000"})
    log = disk.open()
    put(log, b"a", pid=1, seq=0)
    log.request_flush().result(timeout=60)
    put(log, b"b", pid=1, seq=1)
    assert disk.logs is not None
    assert disk.logs.flush_due(NOW_MS + 4999) == 0
    assert disk.logs.flush_due(NOW_MS + 5000) == 1
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 2


def test_the_event_loop_stands_still_for_one_fsync_whatever_others_wait_for(
    make_disk: Callable[..., Disk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of a move, or where the name of a topic is used again before its deletion is on the disk."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    assert disk.logs is not None
    flusher = disk.logs.services.flusher
    synced: list[str] = []
    may_sync = threading.Event()

    def note(path: str) -> None:
        synced.append(path)
        assert may_sync.wait(60)

    disk.faults.arm("log.before_fsync", note)
    others = [flusher.sync([str(tmp_path / f"{number}")]) for number in range(5)]
    sync = flusher.sync

    def let_go(*args: Any, **how: Any) -> Any:
        flushed = sync(*args, **how)
        may_sync.set()
        return flushed

    monkeypatch.setattr(flusher, "sync", let_go)
    log.flush()
    assert log.recovery_point == 1
    others[-1].result(60)
    assert synced.index(log.active.path(names.LOG)) <= 1

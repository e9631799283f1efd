"""What compaction made takes the place of the old segments: readers, crashes, retention in between."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.cext.records import iterate
from kafka_shim.storage import names
from kafka_shim.storage.candidates import examine
from kafka_shim.storage.cleaner import swap
from kafka_shim.storage.compaction import Cancelled
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.log_files import finish_swaps, list_files
from kafka_shim.tests.storage.compacted import COMPACT, DAY_MS, clean, keyed, latest, stored
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, note_syncs, put
from kafka_shim.tests.storage.restarted import BASE, SEGMENT
from kafka_shim.turns import at_once


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


def test_power_cut_between_two_groups_takes_no_value_for_which_an_older_one_went(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk({**COMPACT, "segment.bytes": "4000"})
    log = disk.open()
    synced = note_syncs(disk)
    with monkeypatch.context() as patch:
        patch.setattr(disk.logs.services.flusher, "sync_later", lambda *_: None)  # a slow disk does not come to it
        keyed(log, (b"a", b"old"), (b"b", b"x" * 3000))
        log.flush()
        log.roll(NOW_MS)
        keyed(log, (b"a", b"new"), (b"c", b"x" * 3000))
        newer = log.active.path(names.LOG)
        log.roll(NOW_MS)
    work = disk.logs.cleaner.begin(examine(log, None, NOW_MS))
    work.run()
    assert len(work.groups) == 2
    assert swap(log, work.groups[0], disk.logs.services)
    disk.crash()
    if newer not in synced:
        os.truncate(newer, 0)
    assert latest(disk.open())[b"a"] == b"new"


def test_round_after_a_kill_holds_up_no_fsync_that_is_waited_for_and_no_stop(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk({**COMPACT, "segment.bytes": "4000"})
    log = disk.open()
    for number in range(30):
        keyed(log, (b"%d" % (number % 7), b"x" * 3000))
    disk.crash()
    log = disk.open()
    services = disk.logs.services
    goes_on, synced = threading.Event(), note_syncs(disk)
    services.flusher.run(lambda: iter([goes_on.wait(60)]))  # a slow disk
    work = disk.logs.cleaner.begin(examine(log, None, NOW_MS))
    waited = services.flusher.sync([str(disk.path / "waited")])
    monkeypatch.setattr(disk.logs.cleaner, "_stopping", True)
    with pytest.raises(Cancelled):
        work.run()
    assert not synced
    goes_on.set()
    waited.result()
    assert len(synced) < 30


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
    visible = latest(log)
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
        assert latest(log) == visible
        assert log.log_end_offset == 120
        assert log.producers.entries[1].last_sequence == 59
        assert not [name for name in disk.files() if name.endswith((".swap", ".cleaned", ".deleted"))]
        disk.crash()


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
    values = {}
    for number in range(9):
        values[b"k%d" % (number % 4)] = value = b"%d" % number * 350_000
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
    assert {key: value for _, key, value in stored(log)} == values
    clean(disk, log, roll=False)
    assert {key: value for _, key, value in stored(log)} == values


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
    values = {record.key: record.value for buffer, _ in log.batches() for record in iterate(buffer)}
    assert values.get(b"k") is None


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

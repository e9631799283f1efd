"""What comes between while a thread renames the files of deleted segments: a crash, a stop, a new topic of the name, a
reopening, another round, no descriptor."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.config import TopicConfig
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, put, records
from kafka_shim.tests.storage.test_retention import HOUR_MS, bases, fill

TOPIC = {"segment.bytes": "1048576", "retention.ms": str(HOUR_MS)}
KEPT = list(range(30, 40))


@contextmanager
def renames_held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Lets other threads rename nothing until the event is set, as a journal that is busy."""
    go_on = threading.Event()
    real, main = os.rename, threading.get_ident()

    def rename(source: str, target: str, **directories: Any) -> None:
        if threading.get_ident() != main:
            assert go_on.wait(30)
        real(source, target, **directories)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        try:
            yield go_on
        finally:
            go_on.set()


def begun(disk: Disk) -> tuple[PartitionLog, Iterator[None]]:
    """A log whose first three segments are on their way out, below the offset that DeleteRecords answered."""
    log = disk.open()
    fill(log, 40, step_ms=1000)
    log.delete_records_before(30)
    assert disk.logs is not None
    slices = disk.logs.tasks._slices_of_retention()
    next(slices)
    assert log.leaving is not None
    assert bases(log) == [30]
    return log, slices


def logs_of(disk: Disk) -> list[str]:
    return [name for name in disk.files() if name.endswith(".log")]


def test_the_loop_goes_on_while_the_files_are_renamed(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(TOPIC)
    with renames_held(monkeypatch) as go_on:
        log, slices = begun(disk)
        for _ in range(3):
            next(slices)
        put(log, b"meanwhile")
        assert [offset for offset, _ in records(log)] == [*KEPT, 40]
        assert logs_of(disk) == [f"{base:020d}.log" for base in (0, 10, 20, 30)]
        go_on.set()
        for _ in slices:
            pass
    assert log.leaving is None
    assert logs_of(disk) == [f"{30:020d}.log"]
    disk.clock.advance(log.config.file_delete_delay_ms)
    assert disk.logs is not None
    disk.logs.services.flusher.stop()
    assert not [name for name in disk.files() if name.endswith(".deleted")]


def test_what_is_killed_before_the_renames_does_not_bring_deleted_records_back(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = make_disk(TOPIC)
    with renames_held(monkeypatch):
        begun(disk)
        left = shutil.copytree(disk.path, tmp_path / "left by a kill", ignore=shutil.ignore_patterns(".lock"))
        assert logs_of(disk) == [f"{base:020d}.log" for base in (0, 10, 20, 30)]
    again = Disk(left, TOPIC, {})
    log = again.open()
    try:
        assert (log.log_start_offset, [offset for offset, _ in records(log)]) == (30, KEPT)
    finally:
        again.stop()


@pytest.mark.parametrize("ending", ["stop", "crash"])
def test_an_end_of_the_broker_waits_for_the_renames(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    disk = make_disk(TOPIC)
    with renames_held(monkeypatch) as go_on:
        begun(disk)
        threading.Timer(0.05, go_on.set).start()
        (disk.stop if ending == "stop" else disk.crash)()
    assert logs_of(disk) == [f"{30:020d}.log"]
    log = disk.open()
    assert (log.log_start_offset, [offset for offset, _ in records(log)]) == (30, KEPT)


def test_a_new_topic_of_the_name_keeps_its_files(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(TOPIC)
    with renames_held(monkeypatch) as go_on:
        _, slices = begun(disk)
        logs = disk.logs
        assert logs is not None
        logs.delete("t", 0)
        new = logs.create("t", TOPIC_ID[::-1], 0, TopicConfig(logs.config, TOPIC))
        put(new, b"new")
        go_on.set()
        for _ in slices:
            pass
    logs.services.flusher.stop()
    assert logs_of(disk) == [f"{0:020d}.log"]
    assert records(new) == [(0, b"new")]
    disk.clock.advance(HOUR_MS)
    logs.services.flusher.stop()
    assert records(new) == [(0, b"new")]
    assert [path.name for path in disk.path.iterdir() if path.name.startswith("t-0")] == ["t-0"]


def test_a_partition_is_opened_again_after_the_renames(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(TOPIC)
    with renames_held(monkeypatch) as go_on:
        log, slices = begun(disk)
        log.fail(OSError(errno.EIO, "a broken disk"))
        threading.Timer(0.05, go_on.set).start()
        assert disk.logs is not None
        assert disk.logs.tasks.reopen_offline()
        assert log.leaving is None
        for _ in slices:
            pass
    assert (log.log_start_offset, bases(log)) == (30, [30])
    assert [offset for offset, _ in records(log)] == KEPT


def test_another_round_waits_for_the_one_under_way(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(TOPIC)
    with renames_held(monkeypatch) as go_on:
        log, slices = begun(disk)
        threading.Timer(0.05, go_on.set).start()
        assert disk.logs is not None
        assert disk.logs.retain(NOW_MS + 10 * HOUR_MS) == 1
        for _ in slices:
            pass
    assert (log.log_start_offset, bases(log)) == (40, [40])
    assert logs_of(disk) == [f"{40:020d}.log"]


def test_segments_that_could_not_leave_are_listed_before_those_that_stay(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(TOPIC)
    with renames_held(monkeypatch) as go_on:
        log, slices = begun(disk)
        log.roll(NOW_MS)
        real = os.rename

        def refused(source: str, target: str, **directories: Any) -> None:
            real(source, target, **directories)
            if source.startswith(f"{0:020d}.log"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", refused)
            go_on.set()
            for _ in slices:
                pass
    assert bases(log) == [0, 10, 20, 30, 40]
    assert not log.is_offline
    assert (log.log_start_offset, [offset for offset, _ in records(log)]) == (30, KEPT)
    assert disk.logs is not None
    for _ in disk.logs.tasks._slices_of_retention():
        pass
    assert bases(log) == [30, 40]


def test_without_a_descriptor_the_loop_renames(make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch) -> None:
    disk = make_disk(TOPIC)
    real = os.open

    def refused(path: str, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & os.O_DIRECTORY:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", refused)
    log, slices = begun(disk)
    assert logs_of(disk) == [f"{30:020d}.log"]
    for _ in slices:
        pass
    assert log.leaving is None

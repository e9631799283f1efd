"""The thread for fsync: a waiter that gives up concerns nobody else, and the thread cannot be lost."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kafka_shim.clock import RealClock, VirtualClock
from kafka_shim.faults import Faults
from kafka_shim.storage.data_dir import remove_tree
from kafka_shim.storage.flusher import END, WHOLE_FROM_FILES, Flusher, Sync, _nothing, sync_file_system
from kafka_shim.tests import descriptors


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "f"
    path.write_text("x")
    return str(path)


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def flusher(faults: Faults) -> Iterator[Flusher]:
    flusher = Flusher(faults, RealClock())
    yield flusher
    flusher.stop()


# What the thread does before a task has begun.
TAKING = ("_take", "_do", "_do_background")


def hold(faults: Faults) -> threading.Event:
    """Keep every fsync until the event is set."""
    may_sync = threading.Event()
    faults.arm("log.before_fsync", lambda **_: may_sync.wait(60))
    return may_sync


def test_cancelled_waiter_leaves_the_thread_and_the_other_waiters(faults: Faults, flusher: Flusher, file: str) -> None:
    async def run() -> None:
        may_sync = hold(faults)
        flush = flusher.sync([file])
        waiters = [asyncio.ensure_future(asyncio.wrap_future(flush)) for _ in range(2)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        await asyncio.sleep(0)
        may_sync.set()
        assert waiters[0].cancelled()
        assert await asyncio.wait_for(waiters[1], 60) is None
        assert await asyncio.wait_for(asyncio.wrap_future(flusher.sync([file])), 60) is None

    asyncio.run(run())


def test_waiter_cancelled_before_the_thread_came_to_it_leaves_the_sync(flusher: Flusher, file: str) -> None:
    done: list[bool] = []
    may_go = threading.Event()
    flusher.run(lambda: may_go.wait(60))  # type: ignore[arg-type,return-value]
    flush = flusher.sync([file], lambda: done.append(True))
    assert not flush.cancel()
    may_go.set()
    assert flush.result(60) is None
    assert done == [True]


@pytest.mark.parametrize("step", ["sync", "after", "failed", "task"])
@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_unexpected_error_ends_one_request_and_not_the_thread(
    faults: Faults, flusher: Flusher, file: str, step: str, error: type[BaseException]
) -> None:
    def broken(*_: object, **__: Any) -> None:
        raise error("unexpected")

    if step == "sync":
        faults.arm("log.before_fsync", broken)
        assert flusher.sync([file]).exception(60).errno == errno.EIO
        faults.disarm()
    elif step == "after":
        assert flusher.sync([file], broken).exception(60).errno == errno.EIO
    elif step == "failed":
        faults.arm("log.before_fsync", "oserror", "ENOSPC")
        assert flusher.sync([file], None, broken).exception(60).errno == errno.ENOSPC
        faults.disarm()
    else:
        flusher.run(broken)
    assert flusher.sync([file]).result(60) is None


def test_a_process_without_a_descriptor_syncs_all_the_same(flusher: Flusher, file: str) -> None:
    """What is appended stays: a request that was answered with an error for its fsync alone was carried out."""
    assert flusher.sync([file]).result(60) is None
    with descriptors.none_left():
        for _ in range(3):
            assert flusher.sync([file]).result(60) is None
    count = len(os.listdir("/proc/self/fd"))
    flusher.stop()
    assert len(os.listdir("/proc/self/fd")) == count - 1


def test_caller_does_the_work_when_the_system_refuses_a_thread(
    flusher: Flusher, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert flusher.sync([file]).done()
    assert flusher.sync([file]).result(60) is None


def test_thread_that_died_is_replaced(flusher: Flusher, file: str) -> None:
    assert flusher.sync([file]).result(60) is None
    thread = flusher._thread
    assert thread is not None
    flusher._queue.put((END, 0, None))  # as good as any death
    thread.join(60)
    assert flusher.sync([file]).result(60) is None
    assert flusher._thread is not thread


def test_what_somebody_waits_for_goes_before_what_nobody_waits_for(
    faults: Faults, flusher: Flusher, tmp_path: Path
) -> None:
    may_sync, synced = threading.Event(), []

    def reach(path: str) -> None:
        synced.append(path)
        may_sync.wait(60)

    faults.arm("log.before_fsync", reach)
    rolled = [flusher.sync_later([str(tmp_path / f"rolled-{number}")]) for number in range(3)]
    flusher.run(lambda: synced.append("removed"))
    waited = flusher.sync([str(tmp_path / "waited")])
    may_sync.set()
    waited.result(60)
    rolled[-1].result(60)
    flusher.stop()
    names = [Path(path).name for path in synced]
    # Only the fsync that had begun came before.
    assert names.index("waited") <= 1
    assert [name for name in names if name != "waited"] == ["rolled-0", "rolled-1", "rolled-2", "removed"]


@pytest.mark.parametrize("task", ["removal", "fsyncs"])
def test_what_nobody_waits_for_is_done_though_there_is_always_something_that_is_waited_for(
    flusher: Flusher, tmp_path: Path, task: str
) -> None:
    """Producers of topics with `flush.messages` on a slow disk: retention, and the removal of what it has deleted,
    waited for as long as they wrote."""
    paths = [tmp_path / f"{number}" for number in range(30)]
    for path in paths:
        path.write_text("x")
    may_end, has_begun = threading.Event(), threading.Event()

    def again(path: str) -> None:
        has_begun.set()
        if not may_end.is_set():
            flusher.sync([path], partial(again, path))

    for path in paths[:2]:
        again(str(path))
    assert has_begun.wait(60)
    try:
        if task == "removal":
            removed = threading.Event()
            flusher.run(removed.set)  # type: ignore[arg-type]
            assert removed.wait(60)
        else:
            assert flusher.sync_later([str(path) for path in paths[2:]]).result(60) is None
    finally:
        may_end.set()


def test_few_files_are_synced_one_by_one(faults: Faults, flusher: Flusher, file: str, tmp_path: Path) -> None:
    synced: list[str] = []
    faults.arm("log.before_fsync", lambda path, **_: synced.append(path))
    paths = [file, str(tmp_path / "deleted meanwhile")]
    assert flusher.sync_all(paths, ["/no such directory"]).result(60) is None
    assert synced == paths


def test_many_files_are_synced_by_one_call_for_each_directory(
    faults: Faults, flusher: Flusher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, synced = sync_file_system, []

    def watched(directory: str) -> None:
        synced.append(directory)
        really(directory)

    monkeypatch.setattr("kafka_shim.storage.flusher.sync_file_system", watched)
    faults.arm("log.before_fsync", lambda **_: pytest.fail("synced one by one"))
    directories = [str(tmp_path), str(tmp_path / "second")]
    (tmp_path / "second").mkdir()
    paths = [str(tmp_path / f"{number}") for number in range(WHOLE_FROM_FILES)]
    assert flusher.sync_all(paths, directories).result(60) is None
    assert synced == directories


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs two file systems")
def test_the_file_system_of_a_partition_that_is_a_link_is_synced_too(
    flusher: Flusher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clean stop else left to a power cut what that partition had not fsynced, and the next start scans nothing."""
    with TemporaryDirectory(dir="/dev/shm") as elsewhere:
        if os.stat(elsewhere).st_dev == os.stat(tmp_path).st_dev:
            pytest.skip("needs two file systems")
        (tmp_path / "t-0").symlink_to(elsewhere)
        synced: list[int] = []
        monkeypatch.setattr(
            "kafka_shim.storage.flusher.sync_file_system", lambda directory: synced.append(os.stat(directory).st_dev)
        )
        paths = [str(tmp_path / f"t-{number % 3}" / f"{number}") for number in range(WHOLE_FROM_FILES)]
        assert flusher.sync_all(paths, [str(tmp_path)]).result(60) is None
        assert synced == [os.stat(tmp_path).st_dev, os.stat(elsewhere).st_dev]


def test_many_files_are_synced_one_by_one_where_the_system_has_no_syncfs(
    faults: Faults, flusher: Flusher, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    faults.arm("log.before_fsync", lambda path, **_: synced.append(path))
    monkeypatch.setattr("kafka_shim.storage.flusher.has_syncfs", lambda: False)
    paths = [f"{file}.{number}" for number in range(WHOLE_FROM_FILES)]
    assert flusher.sync_all(paths, ["/no such directory"]).result(60) is None
    assert synced == paths


def test_directory_that_cannot_be_synced_fails_the_sync_of_many_files(flusher: Flusher, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}") for number in range(WHOLE_FROM_FILES)]
    gone = str(tmp_path / "gone")
    error = flusher.sync_all(paths, [str(tmp_path), gone]).exception(60)
    assert isinstance(error, OSError)
    assert (error.errno, error.filename) == (errno.ENOENT, gone)


@pytest.mark.parametrize("long", ["files", "fsyncs"])
def test_what_somebody_waits_for_comes_between_the_files_of_what_nobody_waits_for(
    faults: Faults, flusher: Flusher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: str
) -> None:
    """A partition's directory may have ten thousand files, and the copy of a move as many."""
    has_begun, may_go = threading.Event(), threading.Event()
    waited, others = str(tmp_path / "waited"), tmp_path / "others"
    others.mkdir()
    paths = [others / f"{number}" for number in range(5)]
    for path in (Path(waited), *paths):
        path.write_text("x")
    done: list[str] = []

    def note(path: str) -> None:
        done.append(path)
        if path != waited:
            has_begun.set()
            assert may_go.wait(60)

    faults.arm("log.before_fsync", note)
    if long == "files":
        unlink = os.unlink

        def noted(path: str, **named: Any) -> None:
            note(str(path))
            unlink(path, **named)

        monkeypatch.setattr(os, "unlink", noted)
        flusher.run(partial(remove_tree, str(others)))
    else:
        flusher.sync_later([str(path) for path in paths])
    assert has_begun.wait(60)
    answered = flusher.sync([waited])
    may_go.set()
    assert answered.result(60) is None
    flusher.stop()
    assert done.index(waited) == 1
    assert len(done) == 6
    assert others.exists() == (long == "fsyncs")


def test_memory_that_ends_on_the_way_to_a_task_loses_no_task(file: str) -> None:
    """At each call of the thread in turn: who waits for the task would wait for good."""
    here = Flusher.sync.__code__.co_filename
    left = [0]

    def count(frame: Any, event: str, _: object) -> None:
        if event in ("call", "c_call") and frame.f_code.co_filename == here and frame.f_code.co_name in TAKING:
            left[0] -= 1
            if left[0] == 0:
                raise MemoryError

    for nth in range(1, 40):
        left[0] = nth
        flusher = Flusher(Faults(), RealClock())
        threading.setprofile(count)
        try:
            first = flusher.sync([file])
            flusher.run(lambda: None)
        finally:
            threading.setprofile(None)  # type: ignore[arg-type]
        second = flusher.sync([file])
        told = [flush.exception(60) for flush in (first, second)]
        assert [error.errno for error in told if error] == [errno.ENOMEM][: 2 - told.count(None)], nth
        flusher.stop()
    assert left[0] > 0, "all calls were reached"


class UntoldSync(Sync):
    """Finds no memory to tell of its end, in one call of `_do`."""

    __slots__ = ("failures",)

    def end(self, error: OSError | None) -> None:
        if self.failures:
            self.failures -= 1
            raise MemoryError
        super().end(error)


def test_a_task_that_is_begun_again_is_the_work_of_a_virtual_clock_once(faults: Faults, file: str) -> None:
    """The next `advance_and_drain` waited for ever where it had ended twice."""
    clock = VirtualClock()
    flusher = Flusher(faults, clock)
    sync = UntoldSync([file], None, None)
    sync.failures = 2
    clock.begin_work()
    with pytest.raises(MemoryError):
        flusher._do(sync, 1, _nothing)
    assert (sync.done.done(), clock._work) == (False, 1)
    flusher._do(sync, 1, _nothing)
    assert (sync.done.exception(60), clock._work) == (None, 0)
    flusher.stop()

"""The directories of many new partitions, which a thread makes while the event loop serves others."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.storage import checkpoint, directory_maker
from kafka_shim.storage.data_dir import read_topic_id
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.services import MOST_WORKERS
from kafka_shim.targets.waiting import PATIENCE_S, wait_until
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, make_logs, put, start
from kafka_shim.uuids import uuid_text

COUNT = 40
KEYS = [("t", number) for number in range(COUNT)]


class Disk:
    """Notes which directories threads make, and stands still at one of them if it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stands_at = ""
        self.stood = threading.Event()
        self.goes_on = threading.Event()
        self.fails_at = ""
        self.made: list[str] = []
        self._write = directory_maker.write_topic_id
        monkeypatch.setattr(directory_maker, "write_topic_id", self.write)

    def write(self, path: str, topic_id: bytes) -> None:
        assert threading.current_thread() is not threading.main_thread()
        name = Path(path).name
        if name == self.fails_at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._write(path, topic_id)
        if name == self.stands_at:
            self.stood.set()
            assert self.goes_on.wait(PATIENCE_S)
        self.made.append(name)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(monkeypatch)
    yield disk
    disk.goes_on.set()


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    logs, config = make_logs(tmp_path)
    start(logs, config)
    return logs


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.glob("t-*"))


def while_it_stands(logs: Logs, disk: Disk, at: str, then: Callable[[], object]) -> None:
    """Finish new partitions, and call `then` in the loop while a thread stands in the middle of this directory. It goes
    on once it is told to make no more, or after `then`. Returns when all tasks that `then` began are done, too."""

    async def main() -> None:
        disk.stands_at = at
        logs.create_later(KEYS)
        finishing = asyncio.create_task(logs.finish_changes())
        assert await asyncio.to_thread(disk.stood.wait, PATIENCE_S)
        assert not finishing.done()
        (run,) = set(logs._directories._maker._runs.values())
        opener = threading.Thread(target=_open, args=(run, disk))
        opener.start()
        then()
        await asyncio.sleep(0)  # what it began has its first turn
        disk.goes_on.set()
        opener.join()
        await finishing
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(main())


def _open(run: directory_maker._Run, disk: Disk) -> None:
    wait_until(lambda: run._is_stopped or disk.goes_on.is_set(), "the loop never went on")
    disk.goes_on.set()


def test_the_event_loop_goes_on_while_a_directory_is_made(logs: Logs, disk: Disk, tmp_path: Path) -> None:
    while_it_stands(logs, disk, "t-3", lambda: None)
    assert disk.made == [f"t-{number}" for number in range(COUNT)]
    assert len(names(tmp_path)) == COUNT
    assert {read_topic_id(f"{tmp_path}/{name}") for name in names(tmp_path)} == {uuid_text(TOPIC_ID)}
    assert [put(logs.get("t", number), b"a").base_offset for number in range(COUNT)] == COUNT * [0]
    assert not logs._directories._maker._runs
    logs.stop()


@pytest.mark.parametrize("used", [3, 17], ids=["begun", "not begun"])
def test_first_use_waits_for_the_directory_that_is_being_made_alone(
    logs: Logs, disk: Disk, tmp_path: Path, used: int
) -> None:
    while_it_stands(logs, disk, "t-3", lambda: put(logs.get("t", used), b"a"))
    assert disk.made[:4] == ["t-0", "t-1", "t-2", "t-3"]
    assert "t-4" not in disk.made  # by the loop
    assert len(names(tmp_path)) == COUNT
    assert logs.get("t", used).log_end_offset == 1
    logs.stop()


def test_first_use_of_what_is_made_waits_for_nothing(logs: Logs, disk: Disk) -> None:
    def use() -> None:
        put(logs.get("t", 2), b"a")
        assert not disk.goes_on.is_set()

    while_it_stands(logs, disk, "t-3", use)
    assert disk.made == [f"t-{number}" for number in range(COUNT)]
    logs.stop()


def test_topic_that_is_deleted_meanwhile_leaves_nothing_for_a_new_one_of_its_name(tmp_path: Path, disk: Disk) -> None:
    logs, config = make_logs(tmp_path)
    known: dict[str, bytes] = {"t": TOPIC_ID}
    logs.open_dirs()
    logs.start(lambda topic, _: (known[topic], config, 0) if topic in known else None)

    def delete() -> None:
        del known["t"]
        for number in range(COUNT):
            logs.delete("t", number, later=True)
        assert not names(tmp_path)
        known["t"] = newer
        logs.create_later([("t", 3)])
        put(logs.get("t", 3), b"a")

    newer = bytes(range(16))
    while_it_stands(logs, disk, "t-3", delete)
    assert names(tmp_path) == ["t-3"]
    assert read_topic_id(f"{tmp_path}/t-3") == uuid_text(newer)
    logs.stop()


def test_topic_that_the_metadata_forgets_leaves_nothing(tmp_path: Path, disk: Disk) -> None:
    logs, config = make_logs(tmp_path)
    known = {"t": (TOPIC_ID, config, 0)}
    logs.open_dirs()
    logs.start(lambda topic, _: known.get(topic))
    while_it_stands(logs, disk, "t-3", known.clear)
    assert not names(tmp_path)
    logs.stop()


def test_two_who_finish_wait_for_one_thread(logs: Logs, disk: Disk) -> None:
    others: list[asyncio.Task[None]] = []

    def finish() -> None:
        logs.create_later([("u", 0)])
        others.append(asyncio.create_task(logs.finish_changes()))

    while_it_stands(logs, disk, "t-3", finish)
    assert others[0].exception() is None
    assert sorted(disk.made) == sorted([*(f"t-{number}" for number in range(COUNT)), "u-0"])
    logs.stop()


def test_directory_that_a_thread_cannot_make_is_made_by_the_loop(logs: Logs, disk: Disk, tmp_path: Path) -> None:
    disk.fails_at = "t-3"
    logs.create_later(KEYS)
    asyncio.run(logs.finish_changes())
    assert len(names(tmp_path)) == COUNT
    assert {read_topic_id(f"{tmp_path}/{name}") for name in names(tmp_path)} == {uuid_text(TOPIC_ID)}
    assert len(disk.made) == 3 + 20
    logs.stop()


def test_directory_that_is_there_already_is_left_to_the_loop(logs: Logs, disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "t-3").mkdir()
    (tmp_path / "t-3" / "notes").write_text("somebody's")
    logs.create_later(KEYS)
    asyncio.run(logs.finish_changes())
    assert sorted(os.listdir(tmp_path / "t-3")) == ["partition.metadata"]
    (stray,) = tmp_path.glob("t-3.*-stray")
    assert (stray / "notes").read_text() == "somebody's"
    logs.stop()


@pytest.mark.parametrize("refusal", [RuntimeError("can't start new thread"), MemoryError()], ids=["thread", "memory"])
def test_without_a_thread_the_loop_makes_them(
    logs: Logs, tmp_path: Path, refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        def refuse(*_: object) -> Any:
            raise refusal

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            logs.create_later(KEYS)
            if isinstance(refusal, MemoryError):
                with pytest.raises(MemoryError):
                    await logs.finish_changes()
            else:
                await logs.finish_changes()
        await logs.finish_changes()

    asyncio.run(main())
    assert len(names(tmp_path)) == COUNT
    logs.stop()


def test_first_use_does_not_wait_for_a_thread_that_has_other_work(logs: Logs, disk: Disk, tmp_path: Path) -> None:
    async def main() -> None:
        workers = logs.services.workers
        busy = [workers.begin(disk.goes_on.wait, PATIENCE_S) for _ in range(MOST_WORKERS)]
        logs.create_later(KEYS)
        finishing = asyncio.create_task(logs.finish_changes())
        await asyncio.sleep(0)
        assert logs._directories._maker.has(("t", 3))
        put(logs.get("t", 3), b"a")
        assert names(tmp_path) == ["t-3"]
        disk.goes_on.set()
        assert all(await asyncio.gather(*busy))
        await finishing

    asyncio.run(main())
    assert len(names(tmp_path)) == COUNT
    logs.stop()


def test_several_directories_share_the_new_partitions(tmp_path: Path, disk: Disk) -> None:
    logs, config = make_logs(tmp_path / "a", tmp_path / "b")
    start(logs, config)
    logs.create_later(KEYS)
    asyncio.run(logs.finish_changes())
    assert [len(names(tmp_path / folder)) for folder in "ab"] == [20, 20]
    assert not disk.made  # where each goes is decided as it is made
    logs.stop()


def test_start_offset_of_an_older_topic_goes_before_the_directory_is_made(
    logs: Logs, disk: Disk, tmp_path: Path
) -> None:
    logs.dirs[0].write_offsets(checkpoint.LOG_START_OFFSETS, {("t", 3): 7}, sync=False)
    logs.create_later(KEYS)
    asyncio.run(logs.finish_changes())
    assert "t-3" not in disk.made
    assert len(disk.made) == COUNT - 1
    assert ("t", 3) not in checkpoint.read_offsets(f"{tmp_path}/{checkpoint.LOG_START_OFFSETS}")
    logs.stop()


def test_stop_waits_for_the_thread(logs: Logs, disk: Disk, tmp_path: Path) -> None:
    async def main() -> None:
        disk.stands_at = "t-3"
        logs.create_later(KEYS)
        finishing = asyncio.create_task(logs.finish_changes())
        assert await asyncio.to_thread(disk.stood.wait, PATIENCE_S)
        finishing.cancel()
        (run,) = set(logs._directories._maker._runs.values())
        opener = threading.Thread(target=_open, args=(run, disk))
        opener.start()
        logs.stop()
        opener.join()
        assert len(disk.made) == 4
        with pytest.raises(asyncio.CancelledError):
            await finishing

    asyncio.run(main())
    assert len(disk.made) == 4
    second, config = make_logs(tmp_path)
    start(second, config)
    assert [put(second.get("t", number), b"a", now_ms=NOW_MS).base_offset for number in range(4)] == 4 * [0]
    second.stop()


def test_virtual_clock_stands_still_while_a_thread_makes_directories(logs: Logs, disk: Disk) -> None:
    clock: Any = logs.clock

    def look() -> None:
        assert clock._work == 1

    while_it_stands(logs, disk, "t-3", look)
    assert clock._work == 0
    logs.stop()

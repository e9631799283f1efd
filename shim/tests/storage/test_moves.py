"""Moves of partitions between directories: nothing is lost or doubled, whatever happens, and at every crash."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import Faults
from kafka_shim.metadata.assignments import RETRY_MS, Assignments
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage import checkpoint, future_log, names, producer_snapshot
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.future_log import FutureLog
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import RECOVER_EVERY_MS, Logs
from kafka_shim.storage.moves import SLICE_BYTES, THROTTLE, Moves
from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
from kafka_shim.storage.removals import Removals
from kafka_shim.storage.segments import Segment
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.storage.conftest import NOW_MS, end, put, records, refused

SMALL = {"segment.bytes": "2000", "file.delete.delay.ms": "1000", "retention.ms": "-1"}


def copied(directory: Path, copy: Path) -> None:
    """Copies what a kill leaves. A `.tmp` may take the place of its file meanwhile: the flusher thread goes on."""
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("*.tmp"))


class TwoDirs:
    """Logs and metadata over two directories, without a network, under a virtual clock."""

    def __init__(self, path: Path, **options: object) -> None:
        self.path = path
        self.options = options
        self.start()

    def start(self) -> None:
        dirs = tuple(str(self.path / name) for name in "ab")
        self.clock = VirtualClock(NOW_MS)
        self.faults = Faults()
        self.config = BrokerConfig(log_dirs=dirs, **self.options)
        self.logs = Logs(self.config, self.clock, self.faults)
        self.logs.open_dirs("AAAAAAAAQACAAAAAAAAAAQ")
        self.store = MetadataStore(self.config, self.clock, self.logs, self.faults)
        self.store.start()
        self.logs.start(self.store.lookup)
        self.store.create_missing_logs()
        self.store.register([])
        self.logs.run_periodically()

    def stop(self) -> None:
        self.store.stop()
        self.logs.stop()

    def crash(self) -> None:
        """Only what the operating system has is left; the broker comes back on a copy of it."""
        copy = self.path.with_name(f"{self.path.name}+")
        copied(self.path, copy)
        self.faults.disarm()
        self.stop()
        self.path = copy
        self.start()

    def make(self, **options: str) -> PartitionLog:
        topic = self.store.create_topic("t", 1, 1, {**SMALL, **options})
        self.clock.advance(100)
        assert topic.partitions[0].directories == (self.raw_id("a"),)
        return self.log

    @property
    def log(self) -> PartitionLog:
        return self.logs.get("t", 0)

    def dir_named(self, name: str) -> str:
        return str(self.path / name)

    def raw_id(self, name: str) -> bytes:
        from base64 import urlsafe_b64decode

        (one,) = [one for one in self.logs.dirs if one.path == self.dir_named(name)]
        return urlsafe_b64decode(one.directory_id + "==")

    def move(self, name: str) -> None:
        self.logs.move("t", 0, self.dir_named(name))

    def settle(self, done: Callable[[], bool] | None = None) -> None:
        """Let the move go on to its end."""
        for _ in range(2000):
            if done() if done is not None else not self.logs.moves.futures():
                return
            self.logs.services.flusher.sync_later([]).result()  # what was asked for before is done then
            self.clock.advance(5)
        raise AssertionError("the move does not end")

    def holder(self) -> str:
        """The name of the directory that holds the partition, which is the one that the metadata names, and the one
        that counts it where new partitions are placed."""
        (name,) = [name for name in "ab" if (self.path / name / "t-0").is_dir()]
        assert Path(self.log.directory).parent.name == name
        assert self.store.topic("t").partitions[0].directories == (self.raw_id(name),)
        assert [one.path for one in self.logs.dirs if ("t", 0) in one.partitions] == [self.dir_named(name)]
        return name


@pytest.fixture
def node(tmp_path: Path):
    found = TwoDirs(tmp_path / "data")
    yield found
    found.stop()


def fill(log: PartitionLog, count: int, first: int = 0) -> list[tuple[int, bytes]]:
    for number in range(first, first + count):
        put(log, b"%d" % number * 20)
    return [(number, b"%d" % number * 20) for number in range(first, first + count)]


def files(directory: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(directory).iterdir() if path.suffix == names.LOG}


def test_partition_moves_with_all_that_belongs_to_it(node):
    log = node.make()
    expected = fill(log, 200)
    put(log, b"x", pid=7, seq=0)
    put(log, b"y", pid=8, seq=0, txn=True)
    end(log, 8, 0, commit=False)
    before = files(log.directory)
    assert len(before) > 5
    old = log.directory
    node.move("b")
    assert node.logs.moves.target_of(("t", 0)).path == node.dir_named("b")
    node.settle()
    assert node.log is log
    assert node.holder() == "b"
    assert files(log.directory) == before
    assert not Path(old).exists()
    seen = records(log)
    assert seen[:200] == expected
    assert [value for _, value in records(log, isolation=1)[200:]] == [b"x"]
    assert put(log, b"x", pid=7, seq=0).duplicate
    assert put(log, b"z", pid=7, seq=1).base_offset == 203
    node.clock.advance(2000)
    node.logs.services.flusher.sync_later([]).result()
    assert not [name for name in os.listdir(node.dir_named("a")) if name.startswith("t-0")]
    node.stop()
    node.start()
    assert records(node.log) == [*seen, (203, b"z")]
    assert put(node.log, b"z", pid=7, seq=1).duplicate
    assert node.holder() == "b"


def test_every_file_of_the_copy_is_on_the_disk_before_it_takes_its_place(node, monkeypatch):
    """The indexes and snapshots too: after a move nothing of the partition is checked by a recovery. No start takes a
    copy without a topic id, or finds leader epochs below the recovery point anew."""
    log = node.make()
    fill(log, 200)
    put(log, b"x", pid=7, seq=0)
    put(log, b"y", pid=8, seq=0, txn=True)
    end(log, 8, 0, commit=False)
    right, synced = os.fsync, set()

    def fsync(fd: int) -> None:
        synced.add(os.fstat(fd).st_ino)
        right(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    node.move("b")
    node.settle()
    copied = list(Path(log.directory).iterdir())
    assert {names.LOG, names.INDEX, names.TIME_INDEX, names.TXN_INDEX, names.SNAPSHOT} <= {one.suffix for one in copied}
    assert {"partition.metadata", "leader-epoch-checkpoint"} <= {path.name for path in copied}
    assert {path.name for path in copied if path.stat().st_ino not in synced} == set()
    assert Path(log.directory).stat().st_ino in synced, "their names"


def test_a_power_cut_before_the_copy_has_its_name_does_not_lose_the_partition(node, monkeypatch):
    """The two renames are of two file systems. A start takes the copy only if the metadata names its directory, and
    removes what the first rename left."""
    log = node.make()
    expected = fill(log, 150)
    metadata = node.logs.metadata_log
    metadata.flush()
    file = Path(metadata.active.path(names.LOG))
    on_disk = [file.stat().st_size]
    right = PartitionLog.request_flush

    class Unawaited:
        """An fsync that ends when somebody waits for it."""

        def done(self) -> bool:
            return False

        def result(self) -> None:
            size_bytes = file.stat().st_size
            right(metadata).result()
            on_disk.append(size_bytes)

    monkeypatch.setattr(
        PartitionLog, "request_flush", lambda log, **how: Unawaited() if log is metadata else right(log), raising=True
    )
    cut = node.path.with_name("cut")

    def power_cut(**facts: object) -> None:
        copied(node.path, cut)
        os.truncate(cut / file.relative_to(node.path), on_disk[-1])

    node.move("b")
    node.faults.arm("move.between_renames", power_cut, nth=1)
    node.settle()
    monkeypatch.undo()
    node.stop()
    node.path = cut
    node.start()
    assert records(node.log) == expected
    assert node.holder() == "b"


def test_a_move_whose_record_cannot_be_fsynced_is_tried_again(node):
    log = node.make()
    expected = fill(log, 50)
    node.logs.metadata_log.flush()

    def fail(path: str) -> None:
        if "__cluster_metadata" in path:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    node.move("b")
    node.faults.arm("log.before_fsync", fail)
    node.clock.advance(100)
    node.logs.services.flusher.sync_later([]).result()
    node.clock.advance(100)
    assert node.holder() == "a"
    node.faults.disarm()
    node.settle()
    assert node.holder() == "b"
    assert records(node.log) == expected


def test_both_renames_are_on_the_disk_before_the_copy_takes_an_append(node, monkeypatch):
    """A power failure that took both back would leave the source, without what was acknowledged since."""
    log = node.make()
    fill(log, 20)
    parents: set[str] = set()
    node.move("b")

    def begin_anew(**facts: object) -> None:
        node.faults.arm("log.before_fsync", lambda path: parents.add(os.path.basename(path)))

    node.faults.arm("move.between_renames", begin_anew, nth=1)
    # What is asked for later, nobody waits for.
    flusher = node.logs.services.flusher
    later = flusher.sync_later
    monkeypatch.setattr(flusher, "sync_later", lambda paths, *rest: later([] if parents else paths, *rest))
    node.settle()
    assert node.holder() == "b"
    assert {"a", "b"} <= parents


def test_failed_fsync_of_the_renames_is_made_up_for_later(node, monkeypatch, caplog):
    log = node.make()
    expected = fill(log, 20)
    flusher = node.logs.services.flusher
    sync_now, sync_later = flusher.sync_now, flusher.sync_later
    wanted = {node.dir_named("a"), node.dir_named("b")}
    asked: list[set[str]] = []

    def fail(paths: list[str]) -> None:
        if set(paths) == wanted:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        sync_now(paths)

    monkeypatch.setattr(flusher, "sync_now", fail)
    monkeypatch.setattr(
        flusher, "sync_later", lambda paths, *rest: (asked.append(set(paths)), sync_later(paths, *rest))[1]
    )
    node.move("b")
    node.settle()
    assert node.holder() == "b"
    assert records(log) == expected
    assert wanted in asked
    assert "not on the disk yet: [Errno 24]" in caplog.text


def test_appends_reads_retention_and_deleted_records_go_on_meanwhile(node, monkeypatch):
    monkeypatch.setattr("kafka_shim.storage.moves.SLICE_BYTES", 500)
    log = node.make()
    fill(log, 100)
    node.move("b")
    for number in range(100, 300):
        put(log, b"%d" % number * 20)
        if number == 150:
            log.delete_records_before(60)
            node.logs.retain(node.clock.now_ms())
        if number % 2:
            node.clock.advance(1)
        assert records(log, number) == [(number, b"%d" % number * 20)]
    node.settle()
    assert node.holder() == "b"
    assert records(log) == [(number, b"%d" % number * 20) for number in range(60, 300)]
    node.crash()
    assert records(node.log) == [(number, b"%d" % number * 20) for number in range(60, 300)]
    assert node.holder() == "b"


def test_waiting_readers_stay_with_the_partition(node):
    log = node.make()
    fill(log, 10)
    woken: list[int] = []
    log.subscribe(lambda: woken.append(log.log_end_offset))
    view = log.read(0, 1 << 20).records
    node.move("b")
    node.settle()
    woken.clear()
    fill(log, 1, 10)
    assert woken == [11]
    assert b"".join(bytes(one) for one in view).count(b"9" * 20) == 1


def broken(**_: object) -> None:
    raise RuntimeError("of a test")


@pytest.mark.parametrize("action", ["error", "oserror", "drop", broken, no_memory_left])
@pytest.mark.parametrize("point", ["move.before_assign", "move.after_assign", "move.between_renames"])
def test_a_fault_at_any_step_leaves_the_source_with_what_is_appended_then(node, point, action):
    log = node.make()
    expected = fill(log, 50)
    node.faults.arm(point, action, nth=1)
    node.move("b")
    node.settle(lambda: node.faults.reached(point) > 0)
    assert node.faults.reached(point) == 1
    assert node.holder() == "a"
    expected += fill(log, 10, 50)
    node.crash()
    assert records(node.log) == expected
    node.settle()
    assert node.holder() == "b"


@pytest.mark.parametrize(
    "point",
    ["", "move.before_assign", "move.after_assign", "move.between_renames"],
)
def test_crash_at_any_step_loses_nothing_and_the_move_ends_after_the_start(node, point):
    log = node.make()
    expected = fill(log, 150)
    log.delete_records_before(30)
    shots: list[str] = []

    def shoot(**facts: object) -> None:
        copied(node.path, node.path.with_name("shot"))
        shots.append(point)

    node.move("b")
    if point:
        node.faults.arm(point, shoot, nth=1)
        node.settle()
    else:
        node.clock.advance(1)
        shoot()
    assert shots == [point]
    node.stop()
    node.path = node.path.with_name("shot")
    node.start()
    assert records(node.log) == expected[30:]
    expected += fill(node.log, 5, 150)
    node.settle()
    assert node.holder() == "b"
    assert records(node.log) == expected[30:]
    node.logs.services.flusher.sync_later([]).result()
    assert not [name for name in os.listdir(node.dir_named("a")) if name.startswith("t-0.") and "future" in name]
    assert not [name for name in os.listdir(node.dir_named("b")) if name.startswith("t-0.")]


def test_clean_stop_in_the_middle_is_gone_on_with(node):
    log = node.make()
    expected = fill(log, 150)
    node.move("b")
    node.stop()
    node.start()
    assert node.logs.moves.futures(), "the move goes on"
    node.settle()
    assert node.holder() == "b"
    assert records(node.log) == expected


def test_one_thread_writes_each_checkpoint(node, monkeypatch):
    """They have one temporary file each."""
    fill(node.make(), 50)
    threads: dict[str, set[str]] = {}
    right = checkpoint.write_offsets

    def note(path: str, offsets: dict[tuple[str, int], int], *, sync: bool) -> None:
        threads.setdefault(os.path.basename(path), set()).add(threading.current_thread().name)
        right(path, offsets, sync=sync)

    monkeypatch.setattr(checkpoint, "write_offsets", note)
    node.logs.tasks.scheduler.cancel("checkpoint")
    node.move("b")
    node.settle()
    node.logs.services.flusher.sync_later([]).result()
    flusher = {"kafka-shim-flusher"}
    assert threads[checkpoint.RECOVERY_POINTS] == threads[checkpoint.HIGH_WATERMARKS] == flusher
    assert threads[checkpoint.LOG_START_OFFSETS] == {threading.current_thread().name}
    for name, expected in (("a", {}), ("b", {("t", 0): 50})):
        for file in (checkpoint.RECOVERY_POINTS, checkpoint.HIGH_WATERMARKS):
            assert checkpoint.read_offsets(f"{node.dir_named(name)}/{file}") == expected


@pytest.mark.parametrize("holder", ["a", "b"])
def test_of_two_directories_that_a_power_cut_left_the_one_counts_that_the_metadata_names(node, holder):
    """The two renames at the end of a move are of two file systems, and one may come back without the other."""
    log = node.make()
    expected = fill(log, 20)
    for name in "b" if holder == "b" else "ba":
        node.move(name)
        node.settle()
    (other,) = {"a", "b"} - {holder}
    older = node.path / "older"
    copied(Path(log.directory), older)
    expected += fill(log, 5, 20)
    node.stop()
    older.rename(node.path / other / "t-0")
    node.start()
    assert node.holder() == holder
    assert records(node.log) == expected
    assert [name for name in os.listdir(node.path / other) if name.startswith("t-0.") and name.endswith("-stray")]


def test_a_copy_does_not_take_the_place_of_a_source_whose_directory_cannot_be_used(tmp_path):
    """It lacks what was appended since it was made, and the source comes back with its directory."""
    node = TwoDirs(tmp_path / "data", metadata_log_dir=str(tmp_path / "metadata"))
    log = node.make()
    expected = fill(log, 20)
    node.move("b")
    node.settle(lambda: node.logs.moves.futures()[0].next_offset == 20)
    expected += fill(log, 5, 20)
    node.stop()
    away = node.path / "away"
    (node.path / "a").rename(away)
    (node.path / "a").touch()  # no directory
    node.start()
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        node.logs.get("t", 0)
    assert not (node.path / "b" / "t-0").exists()
    node.stop()
    (node.path / "a").unlink()
    away.rename(node.path / "a")
    node.start()
    assert records(node.log) == expected
    node.settle()
    assert node.holder() == "b"
    assert records(node.log) == expected
    node.stop()


def test_moving_back_ends_the_move(node):
    log = node.make()
    expected = fill(log, 50)
    node.move("b")
    node.move("b")  # the same again changes nothing
    assert len(node.logs.moves.futures()) == 1
    node.move("a")
    assert not node.logs.moves.futures()
    node.logs.services.flusher.sync_later([]).result()
    assert not [name for name in os.listdir(node.dir_named("b")) if name.startswith("t-0")]
    assert node.holder() == "a"
    assert records(log) == expected


def test_deleted_topic_ends_its_move(node):
    fill(node.make(), 50)
    node.move("b")
    node.store.delete_topic("t")
    assert not node.logs.moves.futures()
    node.clock.advance(2000)
    node.logs.services.flusher.sync_later([]).result()
    for name in "ab":
        assert not [one for one in os.listdir(node.dir_named(name)) if one.startswith("t-0")]


@pytest.mark.parametrize("failing", ["append", "rename"])
def test_full_target_keeps_the_source_and_the_move_ends_when_there_is_space(node, monkeypatch, failing):
    log = node.make()
    expected = fill(log, 50)
    node.move("b")

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    rename = os.rename

    def refuse(source: str, target: str) -> None:
        if str(source).endswith("-future"):
            full()
        rename(source, target)

    with monkeypatch.context() as patch:
        if failing == "append":
            patch.setattr("kafka_shim.storage.future_log.append", full)
        else:
            patch.setattr(os, "rename", refuse)
        for _ in range(20):
            node.logs.services.flusher.sync_later([]).result()
            node.clock.advance(1000)
        assert node.holder() == "a"
        expected += fill(log, 5, 50)
        assert records(log) == expected
    node.clock.advance(60_000)
    node.settle()
    assert node.holder() == "b"
    assert records(log) == expected


def test_what_was_copied_before_the_target_was_full_is_on_the_disk_before_the_copy_takes_its_place(node, monkeypatch):
    """Of a partition that is appended to all the time, the end is fsynced in the last step alone: when that has failed
    before, the next one must still know of it."""
    log = node.make()
    expected = fill(log, 50)
    flusher = node.logs.services.flusher
    sync_later, write, fsync = flusher.sync_later, producer_snapshot.write, os.fsync
    failures = [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]
    synced: dict[int, int] = {}

    def sync_and_append(paths: list[str], *rest: object) -> object:
        done = sync_later(paths, *rest)
        if any("-future" in path for path in paths):
            expected.extend(fill(log, 1, len(expected)))
        return done

    def fill_target(path: str, *rest: object, **how: object) -> None:
        if failures and "-future" in path:
            raise failures.pop()
        write(path, *rest, **how)

    def note(fd: int) -> None:
        stat = os.fstat(fd)
        fsync(fd)
        synced[stat.st_ino] = stat.st_size

    monkeypatch.setattr(flusher, "sync_later", sync_and_append)
    monkeypatch.setattr(producer_snapshot, "write", fill_target)
    monkeypatch.setattr(os, "fsync", note)
    node.move("b")
    node.settle()
    assert not failures
    assert node.holder() == "b"
    assert records(log) == expected
    stored = [path.stat() for path in Path(log.directory).glob("*.log")]
    assert [synced.get(stat.st_ino) for stat in stored] == [stat.st_size for stat in stored]


def test_a_copy_that_was_begun_anew_on_a_full_target_has_its_topic_id_before_it_takes_its_place(node, monkeypatch):
    """An fsync of it failed, and there was no room for the new beginning. No start takes a copy without a topic id: a
    kill between the two renames would lose the partition."""
    log = node.make()
    expected = fill(log, 50)
    write_topic_id = future_log.write_topic_id
    failures: list[str] = []

    def fail(path: str) -> None:
        if "-future" in path and not failures:
            failures.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def fill_target(directory: str, topic_id: bytes) -> None:
        if len(failures) == 1:
            failures.append(directory)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_topic_id(directory, topic_id)

    killed = node.path.with_name("killed")
    node.faults.arm("log.before_fsync", fail)
    node.faults.arm("move.between_renames", lambda **_: copied(node.path, killed), nth=1)
    node.move("b")
    with monkeypatch.context() as patch:
        patch.setattr(future_log, "write_topic_id", fill_target)
        node.settle()
    assert len(failures) == 2
    node.stop()
    node.path = killed
    node.start()
    assert records(node.log) == expected
    assert node.holder() == "b"


def test_failed_fsync_at_the_end_of_a_move_writes_the_copy_anew(node, monkeypatch):
    """After a failed fsync the pages may be lost, so that a second fsync of the same files is no proof."""
    log = node.make()
    expected = fill(log, 50)
    flusher = node.logs.services.flusher
    sync, sync_now = flusher.sync_later, flusher.sync_now
    synced: set[str] = set()
    failures = [OSError(errno.EIO, os.strerror(errno.EIO))]

    def note(paths: list[str], *rest: object) -> object:
        synced.update(os.path.basename(path) for path in paths if "future" in path)
        return sync(paths, *rest)

    def fail(paths: list[str]) -> None:
        if failures and any("future" in path for path in paths):
            synced.clear()
            raise failures.pop()
        synced.update(os.path.basename(path) for path in paths)
        sync_now(paths)

    monkeypatch.setattr(flusher, "sync_later", note)
    monkeypatch.setattr(flusher, "sync_now", fail)
    node.move("b")
    node.settle()
    assert not failures
    assert node.holder() == "b"
    assert records(log) == expected
    assert set(files(log.directory)) <= synced


def test_what_a_failed_write_left_in_the_copy_is_not_moved(node, monkeypatch):
    log = node.make()
    fill(log, 50)
    before = files(log.directory)
    append = future_log.append
    node.move("b")

    def tear(fd: int, contents: tuple[bytes, ...]) -> int:
        append(fd, (bytes(contents[0])[:10],))
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(future_log, "append", tear)
        patch.setattr(os, "ftruncate", refuse)
        node.clock.advance(10)
    node.settle()
    assert node.holder() == "b"
    assert files(log.directory) == before


@pytest.mark.parametrize("is_killed", [False, True])
def test_source_that_cannot_get_its_name_back_is_not_lost(node, monkeypatch, is_killed):
    log = node.make()
    expected = fill(log, 50)
    node.move("b")
    rename = os.rename

    def refuse(source: str, target: str) -> None:
        if str(source).endswith("-future") or (str(source).endswith("-delete") and str(target).endswith("t-0")):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        for _ in range(5):
            node.logs.services.flusher.sync_later([]).result()
            node.clock.advance(1000)
        assert not (node.path / "a" / "t-0").exists()
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            put(log, b"not taken")
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            node.move("a")  # the copy must stay
    if is_killed:
        node.crash()
        assert node.holder() == "b"
    else:
        node.clock.advance(120_000)
        node.settle()
    assert records(node.log) == expected
    expected += fill(node.log, 1, 50)
    assert records(node.log) == expected


def left_as_copy(node, topic: str) -> Path:
    """What a kill leaves between the two renames at the end of a move: the copy alone."""
    (where,) = [node.path / name for name in "ab" if (node.path / name / f"{topic}-0").is_dir()]
    copy = names.retired_name(topic, 0, names.FUTURE_DIR, node.clock.random)
    return (where / f"{topic}-0").rename(where / copy)


def test_a_copy_that_took_its_place_at_a_start_is_not_called_clean_before_it_was_used(node):
    """Its directory was closed, the copy was not: an open transaction would be forgotten."""
    log = node.make()
    put(log, b"undecided", pid=7, seq=0, txn=True)
    put(log, b"behind")
    node.stop()
    for snapshot in left_as_copy(node, "t").glob("*.snapshot"):
        snapshot.unlink()
    for _ in range(2):
        node.start()
        node.stop()
    node.start()
    assert (node.log.last_stable_offset, node.log.log_end_offset) == (0, 2)


def test_a_directory_in_which_a_copy_cannot_take_its_place_is_not_used_at_all(node, monkeypatch):
    """It is not locked any more."""
    node.make()
    for name in ("u", "v", "w"):
        node.store.create_topic(name, 1)
        node.logs.get(name, 0)
    in_b = [name for name in ("u", "v", "w") if Path(node.logs.get(name, 0).directory).parent.name == "b"]
    assert len(in_b) > 1
    node.stop()
    left_as_copy(node, in_b[0])
    rename = os.rename

    def refuse(source: str, target: str) -> None:
        if str(source).endswith("-future"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    node.start()
    for name in in_b:
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            node.logs.get(name, 0)
    put(node.log, b"served")


def test_unrecorded_directory_stops_the_end_of_a_move(node):
    log = node.make()
    fill(log, 10)
    node.faults.arm("metadata.before_commit", "error", "KAFKA_STORAGE_ERROR")
    node.move("b")
    for _ in range(10):
        node.logs.services.flusher.sync_later([]).result()
        node.clock.advance(1000)
    assert node.holder() == "a"
    node.faults.disarm()
    node.settle()
    assert node.holder() == "b"


def test_corrupt_source_is_not_moved(node, caplog):
    log = node.make()
    fill(log, 10)
    with open(log.active.path(names.LOG), "r+b") as file:
        file.seek(80)
        file.write(b"?")
    node.move("b")
    node.settle()
    assert node.holder() == "a"
    assert "no valid batch at position 0" in caplog.text


def test_reopened_source_is_copied_anew(node):
    log = node.make()
    fill(log, 10)
    node.move("b")
    node.clock.advance(1)
    node.faults.arm("log.after_write", "oserror", "EIO", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"lost")
    assert log.is_offline
    node.clock.advance(5000)
    node.settle()
    assert node.holder() == "b"
    assert records(log)[:10] == [(number, b"%d" % number * 20) for number in range(10)]
    assert not log.is_offline


def test_compaction_waits_for_the_move_and_knows_what_is_clean(node):
    log = node.make(**{"cleanup.policy": "compact"})
    for number in range(100):
        put(log, b"%d" % number * 20, key=b"k%d" % (number % 3))
    node.logs.cleaner.clean_now(log)
    clean_to = node.logs.dir_of(log).cleaner_offsets["t", 0]
    node.move("b")
    for number in range(100):
        put(log, b"%d" % number * 20, key=b"k%d" % (number % 3))
    assert node.logs.cleaner.choose(node.clock.now_ms()) is None
    node.settle()
    assert node.holder() == "b"
    assert node.logs.dir_of(log).cleaner_offsets["t", 0] == clean_to
    text = (node.path / "b" / checkpoint.CLEANER_OFFSETS).read_text()
    assert f"t 0 {clean_to}" in text
    assert node.logs.cleaner.choose(node.clock.now_ms()).log is log


def test_move_waits_for_the_round_of_compaction_under_way(node, monkeypatch):
    log = node.make()
    fill(log, 10)
    monkeypatch.setattr(node.logs.cleaner, "_cleaned", log)
    node.move("b")
    node.clock.advance(5000)
    assert node.logs.moves.futures()[0].size_bytes == 0
    monkeypatch.setattr(node.logs.cleaner, "_cleaned", None)
    node.settle()
    assert node.holder() == "b"


def test_throttle_bounds_the_bytes_of_a_second(node):
    log = node.make(**{"segment.bytes": str(1 << 20)})
    for _ in range(30):
        put(log, b"x" * 100_000)
    node.config.dynamic = {THROTTLE: str(SLICE_BYTES)}
    node.move("b")
    started_ms = node.clock.now_ms()
    node.settle()
    assert node.clock.now_ms() - started_ms >= 2000


def test_a_throttled_move_of_a_partition_that_is_appended_to_all_the_time_ends(node, monkeypatch):
    """As in Kafka, whose throttle holds up what is above it alone."""
    log = node.make()
    expected = fill(log, 50)
    node.config.dynamic = {THROTTLE: "10000000"}
    copy = FutureLog.copy

    def copy_what_came(future: FutureLog, limit_bytes: int) -> int:
        if len(expected) < 500:
            expected.extend(fill(log, 1, len(expected)))
        return copy(future, limit_bytes)

    monkeypatch.setattr(FutureLog, "copy", copy_what_came)
    node.move("b")
    node.settle()
    assert len(expected) < 500
    assert node.holder() == "b"
    assert records(log) == expected


def test_what_cannot_be_moved(node):
    log = node.make()
    with refused(ErrorCode.LOG_DIR_NOT_FOUND):
        node.logs.move("t", 0, "/nowhere")
    with refused(ErrorCode.INVALID_TOPIC_EXCEPTION):
        node.logs.move("t" * 240, 0, node.dir_named("b"))
    node.config.cordoned_log_dirs = (node.dir_named("b"),)
    with refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT):
        node.move("b")
    node.config.cordoned_log_dirs = ()
    node.faults.arm("log.after_write", "oserror", "EIO", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"x")
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        node.move("b")


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(errno.ENOSPC, "full"), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)]
)
def test_a_directory_is_recorded_later_if_it_could_not_be_when_it_was_to_be(node, monkeypatch, error):
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Assignments, "_records", fail)
        node.store.create_topic("t", 1, 1, SMALL)
        node.clock.advance(100)
    assert node.store.topic("t").partitions[0].directories != (node.raw_id("a"),)
    node.clock.advance(RETRY_MS)
    assert node.store.topic("t").partitions[0].directories == (node.raw_id("a"),)


def test_a_move_that_could_not_be_recorded_either_leaves_the_directory_to_be_recorded_later(node, monkeypatch):
    """The record of a new partition's directory waits for room on a full disk, and so does that of its move, which is
    called off then."""
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    assign, attempts = Assignments.assign, []

    def fail(*_: object) -> None:
        raise full

    def note(*arguments: object) -> None:
        attempts.append(arguments)
        assign(*arguments)

    node.logs.moves.assign = partial(note, node.store.assignments)
    with monkeypatch.context() as patch:
        patch.setattr(Assignments, "_records", fail)
        node.store.create_topic("t", 1, 1, SMALL)
        node.clock.advance(100)
        node.move("b")
        node.settle(lambda: bool(attempts))
    node.move("a")
    node.clock.advance(RETRY_MS)
    assert node.holder() == "a"


def test_a_directory_is_recorded_later_if_there_was_no_memory_for_the_timer_either(node, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Assignments, "_records", no_memory_left)
        patch.setattr(Scheduler, "after", no_memory_left)
        node.store.create_topic("t", 1, 1, SMALL)
        with suppress(MemoryError):
            node.clock.advance(100)
    node.clock.advance(RETRY_MS)
    assert node.store.topic("t").partitions[0].directories == (node.raw_id("a"),)
    assert not node.store.assignments._scheduler.is_scheduled("assign")


def test_directory_named_before_the_topic_exists_gets_its_partition(node):
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        node.move("b")
    node.store.create_topic("t", 1, 1)
    node.clock.advance(100)
    assert node.holder() == "b"


@pytest.mark.option("cordoned.log.dirs")
def test_cordoned_directories_take_no_new_partitions(tmp_path):
    a, b = (str(tmp_path / "data" / name) for name in "ab")
    config = BrokerConfig.parse({"log.dirs": f"{a},{b}", "cordoned.log.dirs": a})
    logs = Logs(config, VirtualClock(), Faults())
    logs.open_dirs("AAAAAAAAQACAAAAAAAAAAQ")
    logs.start(lambda topic, partition: (bytes(16), TopicConfig(config), 0))
    for partition in range(4):
        logs.create("t", bytes(16), partition, TopicConfig(config))
    assert {Path(logs.get("t", partition).directory).parent.name for partition in range(4)} == {"b"}
    config.cordoned_log_dirs = ("*",)
    assert Path(logs.create("u", bytes(16), 0, TopicConfig(config)).directory).parent.name == "a"
    logs.stop()


def test_cordoning_every_directory_refuses_new_topics_and_is_recorded(node):
    node.config.cordoned_log_dirs = ("*",)
    node.store.assignments.record_cordoned()
    (broker,) = node.store.image.brokers.values()
    assert set(broker.cordoned_log_dirs) == {node.raw_id("a"), node.raw_id("b")}
    with pytest.raises(KafkaError, match="have all their log directories cordoned") as refusal:
        node.store.create_topic("t", 1, 1)
    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    node.config.cordoned_log_dirs = ()
    node.store.assignments.record_cordoned()
    node.store.create_topic("t", 1, 1)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(
    "failing", ["copy", "complete", "rename", "both renames", "replaced", "sync", "entries", "removal", "timer"]
)
def test_memory_that_ends_in_a_move_loses_nothing_and_the_move_ends(node, monkeypatch, failing, is_killed):
    log = node.make()
    expected = fill(log, 50)
    node.move("b")
    rename = os.rename

    def refuse(*_: object) -> None:
        raise MemoryError

    def refuse_the_copy(source: str, target: str) -> None:
        if str(source).endswith("-future") or (failing == "both renames" and str(target).endswith("t-0")):
            refuse()
        rename(source, target)

    def copy_unknown(self: FutureLog, segment: Segment) -> int:
        copy_batches(self, segment)
        self._position = 0  # what is in the file and what is known of it differ
        raise MemoryError

    copy_batches = FutureLog._copy_batches
    with monkeypatch.context() as patch:
        match failing:
            case "copy":
                patch.setattr(FutureLog, "_copy_batches", copy_unknown)
            case "complete":
                patch.setattr(FutureLog, "complete", refuse)
            case "replaced":
                patch.setattr(Moves, "_replaced", refuse)
            case "sync":
                patch.setattr(Moves, "_sync_renames", refuse)
            case "entries":
                patch.setattr(OffsetCheckpoints, "write_start_offsets", no_memory_left)
            case "removal":
                patch.setattr(Removals, "after", refuse)
            case "timer":
                patch.setattr(Scheduler, "after", refuse)
            case _:
                patch.setattr(os, "rename", refuse_the_copy)
        for _ in range(20):
            node.logs.services.flusher.sync_later([]).result()
            with suppress(MemoryError):
                node.clock.advance(20)
    for number in range(50, 55):
        with suppress(KafkaError):
            expected += fill(log, 1, number)
    if is_killed:
        node.crash()
    node.clock.advance(2 * RECOVER_EVERY_MS)
    node.settle()
    node.clock.advance(2 * RECOVER_EVERY_MS)
    assert node.holder() == "b"
    assert records(node.log) == expected
    node.clock.advance(node.config.log_segment_delete_delay_ms)
    node.logs.services.flusher.sync_later([]).result()
    assert [path.name for name in "ab" for path in (node.path / name).glob("t-0*")] == ["t-0"]
    node.stop()
    node.start()
    assert records(node.log) == expected


def test_a_move_that_cannot_begin_leaves_nothing(node, monkeypatch):
    node.make()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(future_log, "write_topic_id", refuse)
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            node.move("b")
    node.logs.services.flusher.sync_later([]).result()
    assert not [name for name in os.listdir(node.dir_named("b")) if name.startswith("t-0")]


def test_what_a_kill_at_the_start_of_a_move_left_hides_no_copy_of_a_later_one(node, monkeypatch):
    """Killed again between the two renames, the later one is all that there is of the partition."""
    expected = fill(node.make(), 20)
    node.stop()
    copy = left_as_copy(node, "t")
    scandir = os.scandir
    empty = copy.with_name(names.retired_name("t", 0, names.FUTURE_DIR, node.clock.random))
    empty.mkdir()  # it has not got the topic's id, and the scan comes to it last

    @contextmanager
    def sorted_entries(path: str):
        with scandir(path) as entries:
            yield sorted(entries, key=lambda entry: entry.name == empty.name)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", sorted_entries)
        node.start()
    assert records(node.log) == expected


def test_a_copy_that_is_made_anew_after_a_kill_loses_its_name_before_the_next_one_begins(node, monkeypatch):
    """Another kill may come before it is removed: a start that found two could take the half one."""
    fill(node.make(), 150)
    node.move("b")
    node.clock.advance(1)
    begun = [name for name in os.listdir(node.dir_named("b")) if name.endswith("-future")]
    with monkeypatch.context() as patch:
        patch.setattr(Flusher, "run", lambda *_: None)
        node.crash()
    found = [name for name in os.listdir(node.dir_named("b")) if name.endswith("-future")]
    assert len(begun) == len(found) == 1
    assert begun != found

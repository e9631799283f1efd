"""Moves of partitions between directories lose and double nothing where a disk, memory or the metadata fail them."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage import future_log, producer_snapshot
from kafka_shim.storage.future_log import FutureLog
from kafka_shim.storage.logs import RECOVER_EVERY_MS
from kafka_shim.storage.moves import Moves
from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
from kafka_shim.storage.removals import Removals
from kafka_shim.storage.segments import Segment
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.storage.conftest import put, records, refused
from kafka_shim.tests.storage.two_dirs import copied, files, fill


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


@pytest.mark.parametrize("action", ["error", "oserror", no_memory_left])
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_the_metadata_names_the_source_although_its_record_was_in_the_log_alone(node, action, is_cancelled):
    log = node.make()
    expected = fill(log, 50)
    node.faults.arm("metadata.after_append", action, nth=1)
    node.move("b")
    node.settle(lambda: node.faults.reached("metadata.after_append") > 0)
    node.store.resume()
    assert node.holder() == "a"
    if is_cancelled:
        node.logs.moves.cancel(("t", 0))
        node.clock.advance(60_000)
    node.settle()
    assert node.holder() == ("a" if is_cancelled else "b")
    assert records(node.log) == expected


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

"""Moves of partitions between directories lose and double nothing at a kill or a power cut, whenever it comes."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.storage import names
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.storage.conftest import put, records, refused
from kafka_shim.tests.storage.two_dirs import TwoDirs, copied, fill, left_as_copy


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

"""Moves of partitions between directories: nothing is lost or doubled, whatever happens, and at every crash."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from kafka_shim.errors import ErrorCode
from kafka_shim.storage import checkpoint, names
from kafka_shim.storage.future_log import FutureLog
from kafka_shim.storage.moves import SLICE_BYTES, THROTTLE
from kafka_shim.tests.storage.conftest import end, put, records, refused
from kafka_shim.tests.storage.two_dirs import files, fill


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
    copy without a topic id, or has to find leader epochs below the recovery point."""
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


def test_directory_named_before_the_topic_exists_gets_its_partition(node):
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        node.move("b")
    node.store.create_topic("t", 1, 1)
    node.clock.advance(100)
    assert node.holder() == "b"

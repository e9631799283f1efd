"""Partition directories that requests create and delete: their names, and what is left over of older topics."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import shutil
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.config import TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage import checkpoint, names
from kafka_shim.storage.data_dir import DataDir, read_topic_id
from kafka_shim.storage.directories import RETIRE_RETRY_MS
from kafka_shim.storage.logs import RECOVER_EVERY_MS
from kafka_shim.tests import descriptors
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.storage.conftest import (
    NOW_MS,
    TOPIC_ID,
    Disk,
    make_logs,
    put,
    records,
    refused,
    start,
    stored_logs,
)
from kafka_shim.uuids import uuid_text


def test_new_partition_has_only_its_metadata_until_the_first_append(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    assert disk.files() == ["partition.metadata"]
    assert read_topic_id(str(disk.partition)) == uuid_text(TOPIC_ID)
    assert (disk.partition / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    put(log, b"a")
    assert disk.files() == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_deleted_partition_frees_its_name_at_once_and_its_files_later(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"file.delete.delay.ms": "5000"})
    put(disk.open(), b"old")
    disk.logs.delete("t", 0)
    disk.logs.delete("t", 0)
    config = TopicConfig(disk.logs.config, disk.topic)
    assert disk.logs.create("t", TOPIC_ID, 0, config).log_end_offset == 0
    retired = [name for name in os.listdir(disk.path) if name.endswith(names.DELETE_DIR)]
    assert len(retired) == 1
    disk.clock.advance(5000)
    disk.logs.services.flusher.stop()
    assert not [name for name in os.listdir(disk.path) if name.endswith(names.DELETE_DIR)]


@pytest.fixture
def renames_end(monkeypatch: pytest.MonkeyPatch) -> Callable[[OSError | None], None]:
    """Let the system refuse all renames, or none."""
    rename = os.rename
    refusal: list[OSError | None] = [None]

    def renamed(old: str, new: str) -> None:
        if refusal[0] is not None:
            raise refusal[0]
        rename(old, new)

    monkeypatch.setattr(os, "rename", renamed)
    return lambda error: refusal.__setitem__(0, error)


def deleted_names(disk: Disk) -> list[str]:
    disk.logs.services.flusher.stop()
    return [name for name in os.listdir(disk.path) if name.startswith("t-0")]


def test_a_deleted_directory_that_the_system_refused_to_rename_is_renamed_later(
    make_disk: Callable[..., Disk],
    renames_end: Callable[[OSError | None], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = make_disk({"file.delete.delay.ms": "5000"})
    put(disk.open(), b"old")
    renames_end(OSError(errno.EIO, "Input/output error"))
    disk.logs.delete("t", 0)
    assert deleted_names(disk) == ["t-0"]
    disk.clock.advance(RETIRE_RETRY_MS)
    assert deleted_names(disk) == ["t-0"]
    assert ["t-0 cannot be renamed for deletion now" in line for line in caplog.messages] == [True, True]
    renames_end(None)
    disk.clock.advance(RETIRE_RETRY_MS)
    assert [name.endswith(names.DELETE_DIR) for name in deleted_names(disk)] == [True]
    disk.clock.advance(5000)
    assert deleted_names(disk) == []


def test_a_deleted_directory_is_renamed_although_memory_ended_twice(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is none for the rename, and none for the timer of the next attempt."""
    disk = make_disk({"file.delete.delay.ms": "5000"})
    put(disk.open(), b"old")
    disk.logs.run_periodically()

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "after", no_memory_left)
        with pytest.raises(MemoryError):
            disk.logs.delete("t", 0)
    disk.clock.advance(RECOVER_EVERY_MS)
    assert "t-0" not in os.listdir(disk.path)
    disk.clock.advance(5000 + RECOVER_EVERY_MS)
    assert deleted_names(disk) == []


def test_a_directory_that_somebody_else_removed_is_not_renamed_for_ever(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"old")
    shutil.rmtree(disk.path / "t-0")
    disk.logs.delete("t", 0)
    assert disk.logs.partitions.to_retire == {}
    put(disk.logs.create("t", TOPIC_ID, 0, log.config), b"new")
    assert records(disk.logs.get("t", 0)) == [(0, b"new")]


def test_a_late_rename_leaves_the_next_topic_of_its_name_alone(
    make_disk: Callable[..., Disk], renames_end: Callable[[OSError | None], None]
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"old")
    renames_end(OSError(errno.EIO, "Input/output error"))
    disk.logs.delete("t", 0)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        disk.logs.create("t", TOPIC_ID, 0, log.config)
    renames_end(None)
    new = disk.logs.create("t", TOPIC_ID, 0, log.config)
    put(new, b"new")
    disk.clock.advance(RETIRE_RETRY_MS)
    assert records(disk.logs.get("t", 0)) == [(0, b"new")]
    # The older files were removed at the same time.
    assert deleted_names(disk) == ["t-0"]


def test_a_directory_that_cannot_be_renamed_is_removed_once(
    make_disk: Callable[..., Disk], renames_end: Callable[[OSError | None], None]
) -> None:
    """Each use of the next topic of its name had another removal wait."""
    disk = make_disk({"file.delete.delay.ms": "5000"})
    log = disk.open()
    put(log, b"old")
    renames_end(OSError(errno.EIO, "Input/output error"))
    disk.logs.delete("t", 0)
    disk.logs.create_later([("t", 0)])
    before = count_objects()
    for _ in range(1000):
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            disk.logs.get("t", 0)
    assert count_objects() - before < 100
    disk.clock.advance(5000)
    renames_end(None)
    put(disk.logs.get("t", 0), b"new")
    disk.clock.advance(5000)
    assert deleted_names(disk) == ["t-0"]


def count_objects() -> int:
    gc.collect()
    return sum(isinstance(one, partial) for one in gc.get_objects())


def test_leftovers_do_not_become_a_new_partitions_data(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    other = disk.path / "left-0"
    other.mkdir()
    (other / f"{0:020d}.log").write_bytes(bytes(100))
    assert disk.logs.create("left", TOPIC_ID, 0, log.config).log_end_offset == 0
    assert len([name for name in os.listdir(disk.path) if name.endswith("-stray")]) == 1


def test_start_removes_what_a_deletion_left(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    put(disk.open(), b"old")
    disk.logs.delete("t", 0)
    disk.crash()
    assert [name for name in os.listdir(disk.path) if name.endswith(names.DELETE_DIR)]
    disk.open()
    disk.stop()
    assert not [name for name in os.listdir(disk.path) if name.endswith(names.DELETE_DIR)]


@pytest.mark.parametrize("lives", [1, 2])
def test_topic_made_again_has_no_checkpoint_of_the_older_one(make_disk: Callable[..., Disk], lives: int) -> None:
    disk = make_disk({"cleanup.policy": "compact,delete"})
    log = disk.open()
    for _ in range(10):
        put(log, b"old", key=b"k")
    log.roll(NOW_MS)
    disk.logs.cleaner.clean_now(log)
    log.delete_records_before(10)
    disk.checkpoint()
    if lives == 2:
        disk.stop()
        disk.open()
    disk.logs.delete("t", 0)
    log = disk.logs.create("t", TOPIC_ID, 0, log.config)
    for _ in range(3):
        put(log, b"new", key=b"k")
    for name in ("log-start-offset", "cleaner-offset"):
        assert "t 0 " not in (disk.path / f"{name}-checkpoint").read_text()
    disk.crash()
    log = disk.open()
    assert records(log) == [(number, b"new") for number in range(3)]
    assert disk.logs.dirs[0].cleaner_offsets == {}


def test_long_topic_names_can_be_deleted(tmp_path: Path) -> None:
    logs, config = make_logs(tmp_path)
    start(logs, config)
    topic = "n" * 249
    logs.create(topic, TOPIC_ID, 0, config)
    logs.delete(topic, 0)
    assert logs.find(topic, 0) is None
    assert not (tmp_path / f"{topic}-0").exists()
    logs.stop()


def test_directory_names_are_read_as_kafka_does() -> None:
    assert names.partition_of("a-b-12") == ("a-b", 12)
    for other in ("a", "-1", "a-", "a-01", "a-1.abc-delete", "a-x", "cleaner-offset-checkpoint"):
        assert names.partition_of(other) is None


def test_partition_made_without_descriptors_is_made_at_its_next_use(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    logs, config = stored_logs(disk)
    for spare in range(3):
        with descriptors.none_left(spare):
            for _ in range(2):
                try:
                    logs.create("u", TOPIC_ID, spare, config)
                except KafkaError as err:
                    assert err.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert logs.has("u", spare)
    assert [put(logs.get("u", number), b"a").base_offset for number in range(3)] == [0, 0, 0]
    assert not [name for name in os.listdir(disk.path) if name.endswith("-stray")]
    logs.stop()


@pytest.mark.parametrize("is_used_first", [False, True])
def test_recovery_point_of_an_older_topic_is_not_the_new_ones(
    make_disk: Callable[..., Disk], is_used_first: bool
) -> None:
    """After a power cut it says which files are whole: a batch that was lost was taken for stored."""
    disk = make_disk()
    log = disk.open()
    put(log, *20 * [b"old"])
    log.flush()
    disk.checkpoint()
    logs = disk.logs
    assert logs is not None
    points = disk.path / checkpoint.RECOVERY_POINTS
    assert checkpoint.read_offsets(str(points)) == {("t", 0): 20}
    logs.delete("t", 0)
    logs.create_later([("t", 0)])
    if is_used_first:
        put(logs.get("t", 0), b"new")
    drive(logs.finish_changes())
    logs.services.flusher.stop()
    assert checkpoint.read_offsets(str(points)) == {("t", 0): 0}


def test_names_that_are_new_have_no_checkpoint_written(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    disk.open()
    disk.checkpoint()
    logs = disk.logs
    assert logs is not None
    logs.create_later([("u", 0)])
    drive(logs.finish_changes())
    logs.services.flusher.stop()
    assert checkpoint.read_offsets(f"{disk.path}/{checkpoint.RECOVERY_POINTS}") == {("t", 0): 0}


def test_to_create_partition_made_without_descriptors_is_not_forgotten(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    logs, _ = stored_logs(disk)
    logs.create_later([("u", 0), ("u", 1)])
    with descriptors.none_left():
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            logs.get("u", 0)
        drive(logs.finish_changes())
    drive(logs.finish_changes())
    assert [put(logs.get("u", number), b"a").base_offset for number in range(2)] == [0, 0]
    logs.stop()


def drive(steps: Coroutine[object, object, None]) -> None:
    """Run a coroutine that only lets others have their turn; a loop would need descriptors."""
    with contextlib.suppress(StopIteration):
        while True:
            steps.send(None)


@pytest.mark.parametrize(("made_in_us", "turns"), [(0, 2), (63, 10), (5000, 40)])
def test_directories_that_take_long_are_made_fewer_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_in_us: int, turns: int
) -> None:
    """20 new partitions held the loop for 42 ms."""
    logs, config = make_logs(tmp_path)
    start(logs, config)
    logs.create_later([("t", number) for number in range(40)])
    clock, make = logs.services.clock, DataDir.make_partition
    now_us = [0]

    def made(*arguments: Any) -> Any:
        now_us[0] += made_in_us
        return make(*arguments)

    monkeypatch.setattr(DataDir, "make_partition", made)
    monkeypatch.setattr(type(clock), "monotonic_us", lambda _: now_us[0])
    finishing = logs.finish_changes()
    count = 0
    with pytest.raises(StopIteration):
        while True:
            finishing.send(None)
            count += 1
    assert count == turns
    assert len(list(tmp_path.glob("t-*"))) == 40

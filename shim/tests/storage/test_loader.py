"""From directories to logs: the scan at a start, and the first use of a partition, which is tried again if it fails."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.storage.data_dir import read_topic_id
from kafka_shim.storage.results import StorageError
from kafka_shim.tests import descriptors
from kafka_shim.tests.storage.conftest import TOPIC_ID, Disk, make_logs, put, records, refused, start, stored_logs
from kafka_shim.tests.storage.fault_injection import Injector
from kafka_shim.uuids import uuid_text


def test_unknown_and_foreign_directories_become_stray(tmp_path: Path) -> None:
    logs, config = make_logs(tmp_path)
    start(logs, config)
    put(logs.create("gone", TOPIC_ID, 0, config), b"a")
    put(logs.create("remade", TOPIC_ID, 0, config), b"a")
    logs.stop()
    logs, config = make_logs(tmp_path)
    logs.open_dirs()
    logs.start(lambda topic, partition: None if topic == "gone" else (bytes(16), config, 0))
    assert logs.names() == [("remade", 0)]
    assert logs.get("remade", 0).log_end_offset == 0
    stray = sorted(name for name in os.listdir(tmp_path) if name.endswith("-stray"))
    assert [name.split(".")[0] for name in stray] == ["gone-0", "remade-0"]
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        logs.get("gone", 0)
    logs.stop()
    assert read_topic_id(str(tmp_path / "remade-0")) == uuid_text(bytes(16))


def test_deleted_records_of_an_older_topic_take_none_of_the_new_one_after_a_kill(tmp_path: Path) -> None:
    """The checkpoint of log start offsets has its start until the partition is loaded."""
    logs, config = make_logs(tmp_path / "before")
    start(logs, config)
    log = logs.create("t", TOPIC_ID, 0, config)
    put(log, *[b"old"] * 3)
    log.delete_records_before(2)
    logs.stop()
    for path in (tmp_path / "before", tmp_path / "killed"):
        logs, config = make_logs(path)
        logs.open_dirs()
        logs.start(lambda topic, partition: (bytes(16), config, 0))  # noqa: B023
        log = logs.get("t", 0)
        if path.name == "before":
            put(log, b"new")
            shutil.copytree(path, tmp_path / "killed")
        assert records(log) == [(0, b"new")]
        logs.stop()


def test_many_partitions_start_lazily_and_cost_little(tmp_path: Path) -> None:
    logs, config = make_logs(tmp_path)
    start(logs, config)
    for partition in range(300):
        logs.create("t", TOPIC_ID, partition, config)
    put(logs.get("t", 7), b"a")
    logs.stop()
    logs, config = make_logs(tmp_path)
    start(logs, config)
    assert len(logs.partitions.loaded) == 0
    assert logs.get("t", 7).log_end_offset == 1
    assert len(logs.partitions.loaded) == 1
    tracemalloc.start()
    loaded = list(logs.all())
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(loaded) == 300
    assert used / 300 < 6 * 1024
    assert len(logs.services.files) <= 1
    logs.stop()


def test_partition_that_cannot_be_loaded_is_an_error_and_is_loaded_anew_at_its_next_use(
    make_disk: Callable[..., Disk],
) -> None:
    logs, _ = stored_logs(make_disk())
    with descriptors.none_left():
        for _ in range(2):
            with refused(ErrorCode.KAFKA_STORAGE_ERROR):
                logs.get("t", 0)
        assert logs.find("t", 0) is None
        assert logs.is_unread("t", 0)
        assert not logs.is_offline("t", 0)
    log = logs.get("t", 0)
    assert [value for _, value in records(log)] == [b"a", b"b", b"c"]
    assert put(log, b"d").base_offset == 3
    logs.stop()


def test_partition_that_is_loaded_in_part_is_not_registered(make_disk: Callable[..., Disk]) -> None:
    """Whichever call of a load finds no descriptor left, the log is nowhere, or whole."""
    disk = make_disk()
    put(disk.open(), b"a", pid=1, seq=0)
    disk.crash()
    injector, failed = Injector(), 0
    injector.kind, injector.fired = "EMFILE", "not yet"
    while injector.fired:
        logs, config = make_logs(disk.path)
        logs.open_dirs()
        injector.nth, injector.count, injector.fired = injector.nth + 1, 0, ""
        with injector.installed(), contextlib.suppress(StorageError):
            injector.is_active = True
            logs.start(lambda *key, config=config: (TOPIC_ID, config, 0))  # recovers, and so loads, the partition
            failed += logs.is_unread("t", 0)
            injector.is_active = False
            log = logs.get("t", 0)
            assert (log.log_end_offset, log.producers.entries[1].last_sequence) == (1, 0), injector.fired
        injector.is_active = False
        for log in logs.loaded():
            for segment in log.segments:
                segment.abandon()
        for data_dir in logs.dirs:
            data_dir.unlock()
    assert failed >= 3


def test_partition_that_cannot_be_loaded_by_its_disk_is_offline_and_keeps_its_checkpoints(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", b"b", b"c")
    log.delete_records_before(2)
    disk.stop()
    logs, config = make_logs(disk.path)
    start(logs, config)

    def broken(path: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr("kafka_shim.storage.recovery.list_files", broken)
    for _ in range(3):
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            logs.get("t", 0)
    assert logs.is_offline("t", 0)
    assert logs.offline_count == 1
    assert caplog.text.count("t-0 is offline") == 1
    monkeypatch.undo()
    logs.stop()
    assert not (disk.path / ".kafka_cleanshutdown").exists()
    log = disk.open()
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)


def test_topic_id_that_cannot_be_read_is_not_a_missing_one(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    logs, _ = stored_logs(disk)
    with descriptors.none_left(), pytest.raises(OSError, match="Too many open files"):
        read_topic_id(str(disk.partition))
    logs.stop()


@pytest.mark.parametrize("damage", [b"nonsense", b"\xff\n", b"\nnonsense"])
def test_a_damaged_topic_id_does_not_make_the_records_anothers(make_disk: Callable[..., Disk], damage: bytes) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.stop()
    file = disk.partition / "partition.metadata"
    right = file.read_bytes()
    file.write_bytes(right + damage)
    assert disk.open().log_end_offset == 1
    assert read_topic_id(str(disk.partition)) == uuid_text(TOPIC_ID)
    file.write_bytes(right[:-5])
    assert read_topic_id(str(disk.partition)) is None

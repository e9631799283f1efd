"""What a start does with the directories of `log.dirs`: which it refuses, which it goes on without."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.storage import checkpoint
from kafka_shim.storage.data_dir import DataDir
from kafka_shim.storage.results import StorageError
from kafka_shim.tests.storage.conftest import TOPIC_ID, Disk, put, records, refused
from kafka_shim.tests.storage.test_logs import make_logs, start


def fail_once(monkeypatch: pytest.MonkeyPatch, where: Path) -> None:
    """The next listing of this directory fails."""
    listed = os.scandir

    def scandir(path: str) -> object:
        if Path(path) == where:
            monkeypatch.setattr(os, "scandir", listed)
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)


@pytest.mark.parametrize("has_identity", [True, False])
def test_a_directory_that_cannot_be_listed_is_gone_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_identity: bool
) -> None:
    good, bad = tmp_path / "a", tmp_path / "b"
    logs, config = make_logs(good, bad)
    start(logs, config)
    for partition in range(2):
        put(logs.create("t", TOPIC_ID, partition, config), b"x")
    logs.stop()
    if not has_identity:
        (bad / "meta.properties").unlink()
    fail_once(monkeypatch, bad)
    logs, config = make_logs(good, bad)
    start(logs, config)
    assert logs.failed_dirs == [str(bad)]
    assert logs.names() == [("t", 0)]
    logs.stop()
    assert (bad / ".kafka_cleanshutdown").exists(), "it was not touched"


def test_a_directory_that_fails_in_the_scan_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names that were found before the error belong to no usable directory."""
    good, bad = tmp_path / "a", tmp_path / "b"
    logs, config = make_logs(good, bad)
    start(logs, config)
    for partition in range(4):
        put(logs.create("t", TOPIC_ID, partition, config), b"x")
    logs.stop()
    (bad / "unknown-0").mkdir()
    logs, config = make_logs(good, bad)
    logs.open_dirs()
    renamed: list[str] = []

    def rename(source: str, target: str) -> None:
        renamed.append(source)
        raise OSError(errno.EIO, os.strerror(errno.EIO), source)

    def lookup(topic: str, partition: int) -> object:
        return None if topic == "unknown" else (TOPIC_ID, config, 0)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        # The stray comes last, when the others of its directory are known already.
        scan = DataDir.scan
        patch.setattr(DataDir, "scan", lambda one: (sorted(scan(one)[0]), []))
        logs.start(lookup)
    assert renamed == [str(bad / "unknown-0")]
    assert logs.failed_dirs == [str(bad)]
    assert sorted(logs.names()) == [("t", 0), ("t", 2)]
    assert logs.find("t", 1) is None
    logs.stop()


def test_the_directory_of_another_cluster_is_named_not_the_first(tmp_path: Path) -> None:
    logs, config = make_logs(tmp_path / "old")
    start(logs, config)
    logs.stop()
    with pytest.raises(
        StorageError, match=rf"^{re.escape(str(tmp_path / 'old'))} belongs to the cluster .*, not to other$"
    ):
        make_logs(tmp_path / "new", tmp_path / "old")[0].open_dirs("other")


def test_a_refused_start_marks_no_new_directory(tmp_path: Path) -> None:
    """Its cluster id would be one that nobody chose, and the next start would be refused for it."""
    old, other, new = tmp_path / "old", tmp_path / "other", tmp_path / "new"
    for path in (old, other):
        logs, config = make_logs(path)
        start(logs, config)
        logs.stop()
    for paths in ((new, old, other), (new, old)):
        logs, _ = make_logs(*paths, node_id=2 if len(paths) == 2 else 1)
        with pytest.raises(StorageError, match="belong"):
            logs.open_dirs()
        assert not (new / "meta.properties").exists()
    logs, _ = make_logs(new, old)
    logs.open_dirs()
    assert (new / "meta.properties").exists()
    logs.stop()


@pytest.mark.parametrize("folder", ["backup", "lost+found", "t-x", "t-", "backup-delete", "t-1.abc-deleted"])
def test_a_folder_that_is_not_kafkas_refuses_the_start(tmp_path: Path, folder: str) -> None:
    logs, config = make_logs(tmp_path)
    start(logs, config)
    put(logs.create("t", TOPIC_ID, 0, config), b"x")
    logs.stop()
    (tmp_path / folder / "precious").mkdir(parents=True)
    again, config = make_logs(tmp_path)
    with pytest.raises(StorageError) as caught:
        again.open_dirs()
    assert f"contains a folder {folder}, which has not the form TOPIC-PARTITION" in str(caught.value)
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / folder / "precious").exists()
    (tmp_path / folder / "precious").rmdir()
    (tmp_path / folder).rmdir()
    again, config = make_logs(tmp_path)
    start(again, config)
    assert records(again.get("t", 0)) == [(0, b"x")]
    again.stop()


@pytest.mark.parametrize("folder", ["remote-log-index-cache", "t-1.0123-future", "t-1.0123-stray"])
def test_folders_that_kafka_leaves_are_no_partitions(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    logs, config = make_logs(tmp_path)
    start(logs, config)
    assert logs.names() == []
    logs.stop()
    assert (tmp_path / folder).exists()


def test_a_missing_identity_is_told_with_the_folders_that_count_as_partitions(tmp_path: Path) -> None:
    (tmp_path / "backup-1").mkdir()
    with pytest.raises(StorageError) as caught:
        make_logs(tmp_path)[0].open_dirs()
    for part in ("is missing", "holds 1 partitions (backup-1;", "every folder NAME-NUMBER counts as one, as in Kafka"):
        assert part in str(caught.value)


def test_an_error_of_any_kind_lets_go_of_the_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data_dir: DataDir, *, holds_partitions: bool) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(DataDir, "check_identity", broken)
        with pytest.raises(RuntimeError):
            make_logs(tmp_path)[0].open_dirs()
    logs, _ = make_logs(tmp_path)
    logs.open_dirs()
    logs.stop()


def test_checkpoints_of_a_topic_are_not_inherited_by_the_next_of_its_name(make_disk: Callable[..., Disk]) -> None:
    """After a crash the start offset of the older topic would hide the records of the newer one."""
    disk = make_disk()
    log = disk.open()
    for _ in range(5):
        put(log, b"old")
    log.delete_records_before(4)
    assert disk.logs is not None
    data_dir = disk.logs.dirs[0]
    data_dir.cleaner_offsets["t", 0] = 5
    data_dir.write_offsets(checkpoint.CLEANER_OFFSETS, data_dir.cleaner_offsets, sync=False)
    disk.logs.delete("t", 0)
    put(disk.logs.create("t", TOPIC_ID, 0, log.config), b"new")
    disk.crash()
    log = disk.open()
    assert (log.log_start_offset, records(log)) == (0, [(0, b"new")])
    assert disk.logs.dirs[0].cleaner_offsets == {}


def test_a_partition_with_a_damaged_index_is_back_without_a_restart(make_disk: Callable[..., Disk]) -> None:
    """It is loaded again as after a crash, whatever the last stop was."""
    disk = make_disk({"index.interval.bytes": "1"})
    log = disk.open()
    for value in (b"a", b"b", b"c"):
        put(log, value)
    disk.stop()
    (disk.partition / f"{0:020d}.index").write_bytes(b"\x7f" * 408)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        disk.open()
    assert disk.logs is not None
    assert disk.logs.dirs[0].was_clean
    assert disk.logs.reopen_offline()
    log = disk.logs.get("t", 0)
    assert records(log) == [(0, b"a"), (1, b"b"), (2, b"c")]

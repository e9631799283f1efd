"""What a start does with the directories of `log.dirs`: which it refuses, which it goes on without."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig
from kafka_shim.errors import ErrorCode
from kafka_shim.faults import Faults
from kafka_shim.randomness import Randomness
from kafka_shim.storage import checkpoint
from kafka_shim.storage.data_dir import DataDir, read_topic_id
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.results import StorageError
from kafka_shim.tests import descriptors
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, make_logs, put, records, refused, start
from kafka_shim.uuids import uuid_text

CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAQ"


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


@pytest.mark.parametrize("content", ["src", "notes-1"])
def test_a_refused_start_leaves_nothing_in_a_directory_that_is_not_kafkas(tmp_path: Path, content: str) -> None:
    """As where `--data-dir .` is said in a checkout."""
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    own.mkdir()
    (foreign / content).mkdir(parents=True)
    with pytest.raises(StorageError):
        make_logs(own, foreign)[0].open_dirs()
    assert os.listdir(own) == []
    assert os.listdir(foreign) == [content]


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
    for part in ("is missing", "holds 1 partition (backup-1;", "every folder NAME-NUMBER counts as one, as in Kafka"):
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


def test_directory_in_use_is_refused_in_and_across_processes(tmp_path: Path) -> None:
    first, config = make_logs(tmp_path)
    start(first, config)
    second, _ = make_logs(tmp_path)
    with pytest.raises(StorageError, match="in use by a broker of this process"):
        second.open_dirs()
    code = (
        "import sys; from kafka_shim.storage.data_dir import DataDir\n"
        "from kafka_shim.storage.results import StorageError\n"
        "try: DataDir(sys.argv[1]).lock()\nexcept StorageError as err: print(err)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    root = Path(__file__).parents[3]
    assert "in use" in subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout
    first.stop()
    second.open_dirs()
    second.stop()


def test_identity_is_written_once_and_must_fit(tmp_path: Path) -> None:
    logs, config = make_logs(tmp_path)
    cluster = start(logs, config)
    logs.stop()
    meta = (tmp_path / "meta.properties").read_text()
    assert f"cluster.id={cluster}\n" in meta
    assert "node.id=1\n" in meta
    assert "version=1\n" in meta
    again, config = make_logs(tmp_path)
    assert start(again, config, cluster) == cluster
    again.stop()
    with pytest.raises(StorageError, match="belongs to node 1, this is node 2"):
        make_logs(tmp_path, node_id=2)[0].open_dirs()
    with pytest.raises(StorageError, match="belongs to the cluster"):
        make_logs(tmp_path)[0].open_dirs("other")
    assert (tmp_path / "meta.properties").read_text() == meta


def test_directories_of_different_clusters_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        logs, config = make_logs(tmp_path / name)
        start(logs, config)
        logs.stop()
    with pytest.raises(StorageError, match="different clusters"):
        make_logs(tmp_path / "a", tmp_path / "b")[0].open_dirs()
    # A refused start lets go of every lock.
    logs, config = make_logs(tmp_path / "a")
    start(logs, config)
    logs.stop()


def test_unusable_directory_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be used"):
        make_logs(tmp_path / "file")[0].open_dirs()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "meta.properties").write_text("version=7\n")
    with pytest.raises(StorageError, match="version 7"):
        make_logs(tmp_path / "d")[0].open_dirs()


def test_start_goes_on_without_a_directory_that_cannot_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = tmp_path / "a", tmp_path / "b"
    bad.write_text("no directory")
    logs, config = make_logs(good, bad)
    start(logs, config)
    assert logs.failed_dirs == [str(bad)]
    assert f"the data directory {bad} cannot be used: Not a directory; going on without it" in caplog.text
    for partition in range(2):
        put(logs.create("t", TOPIC_ID, partition, config), b"x")
    logs.stop()
    assert (good / ".kafka_cleanshutdown").exists()
    bad.unlink()
    bad.mkdir()
    (bad / "meta.properties").mkdir()
    logs, config = make_logs(good, bad)
    start(logs, config)
    assert (logs.failed_dirs, logs.dirs[0].path) == ([str(bad)], str(good))
    logs.stop()
    (bad / "meta.properties").rmdir()
    logs, config = make_logs(good, bad)
    start(logs, config)
    assert logs.failed_dirs == []
    logs.stop()


def test_start_needs_the_directory_of_the_metadata_log(tmp_path: Path) -> None:
    good, bad = tmp_path / "a", tmp_path / "b"
    bad.write_text("no directory")
    with pytest.raises(StorageError, match="cannot be used"):
        make_logs(bad, good)[0].open_dirs()
    config = BrokerConfig(log_dirs=(str(good), str(bad)), metadata_log_dir=str(bad))
    with pytest.raises(StorageError, match="cannot be used"):
        Logs(config, VirtualClock(NOW_MS), Faults()).open_dirs()
    # A refused start lets go of every lock.
    logs, _ = make_logs(good)
    logs.open_dirs()
    logs.stop()


def test_the_metadata_log_can_be_outside_of_log_dirs(tmp_path: Path) -> None:
    def opened(metadata_log_dir: Path) -> Logs:
        config = BrokerConfig(log_dirs=(str(tmp_path / "data"),), metadata_log_dir=str(metadata_log_dir))
        return Logs(config, VirtualClock(NOW_MS), Faults())

    logs = opened(tmp_path / "metadata")
    cluster_id = logs.open_dirs()
    logs.open_metadata_log()
    assert (tmp_path / "metadata" / "__cluster_metadata-0").is_dir()
    assert not (tmp_path / "data" / "__cluster_metadata-0").exists()
    assert [data_dir.path for data_dir in logs.dirs] == [str(tmp_path / "data")]
    with pytest.raises(StorageError, match="in use"):
        opened(tmp_path / "metadata").open_dirs()
    logs.stop()
    again = opened(tmp_path / "metadata")
    assert again.open_dirs() == cluster_id
    again.stop()
    # Its identity counts: the directory of another cluster is refused.
    other = opened(tmp_path / "other")
    meta = (tmp_path / "data" / "meta.properties").read_text()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "meta.properties").write_text(meta.replace(cluster_id, "AAAAAAAAAAAAAAAAAAAAAA"))
    with pytest.raises(StorageError, match="different clusters"):
        other.open_dirs()


def test_a_start_without_any_usable_directory_of_log_dirs_is_refused(tmp_path: Path) -> None:
    """As Kafka halts, though the metadata log has a directory of its own: no partition could be created."""
    bad = [tmp_path / "a", tmp_path / "b"]
    for path in bad:
        path.write_text("no directory")
    config = BrokerConfig(log_dirs=tuple(map(str, bad)), metadata_log_dir=str(tmp_path / "metadata"))
    logs = Logs(config, VirtualClock(NOW_MS), Faults())
    with pytest.raises(StorageError, match=f"none of log.dirs can be used: the data directory {bad[1]} cannot be used"):
        logs.open_dirs()
    bad[1].unlink()
    again = Logs(config, VirtualClock(NOW_MS), Faults())
    again.open_dirs()
    assert (again.failed_dirs, [one.path for one in again.dirs]) == ([str(bad[0])], [str(bad[1])])
    again.stop()


def test_a_fresh_disk_may_be_the_metadata_directory(tmp_path: Path) -> None:
    """Its lost+found is not Kafka's, and Kafka parses the folder names in log.dirs alone."""
    metadata = tmp_path / "metadata"
    (metadata / "lost+found").mkdir(parents=True)
    (metadata / "notes-1").mkdir()
    config = BrokerConfig(log_dirs=(str(tmp_path / "data"),), metadata_log_dir=str(metadata))
    logs = Logs(config, VirtualClock(NOW_MS), Faults())
    logs.open_dirs()
    logs.open_metadata_log()
    logs.stop()
    # A metadata log without its identity is refused all the same.
    (metadata / "meta.properties").unlink()
    with pytest.raises(StorageError, match=r"holds 1 partition \(__cluster_metadata-0;"):
        Logs(config, VirtualClock(NOW_MS), Faults()).open_dirs()


def test_partitions_go_to_the_emptiest_directory_and_are_found_again(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    logs, config = make_logs(*paths)
    start(logs, config)
    for partition in range(7):
        put(logs.create("t", TOPIC_ID, partition, config), b"%d" % partition)
    counts = [len([name for name in os.listdir(path) if name.startswith("t-")]) for path in paths]
    assert counts == [3, 2, 2]
    logs.stop()
    logs, config = make_logs(*paths)
    start(logs, config)
    assert [records(logs.get("t", partition)) for partition in range(7)] == [[(0, b"%d" % n)] for n in range(7)]
    assert logs.directory_id("t", 0) == logs.dirs[0].directory_id
    assert sum(len(status.partitions) for status in asyncio.run(logs.describe_dirs())) == 7
    logs.stop()


def test_partition_in_two_directories_stops_the_start(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "t-0").mkdir(parents=True)
        DataDir(str(tmp_path / name)).write_meta(CLUSTER_ID, 1, Randomness(1))
    logs, config = make_logs(tmp_path / "a", tmp_path / "b")
    with pytest.raises(StorageError, match="two data directories"):
        start(logs, config)
    logs.stop()


def test_of_a_partition_in_two_directories_the_one_of_another_topic_id_is_set_aside(tmp_path: Path) -> None:
    for first, second in (("a", "b"), ("b", "a")):
        root = tmp_path / first
        for name, topic_id in ((first, TOPIC_ID), (second, b"\x07" * 16)):
            data_dir = DataDir(str(root / name))
            data_dir.make_partition("t", 0, topic_id)
            data_dir.write_meta(CLUSTER_ID, 1, Randomness(1))
        logs, config = make_logs(root / "a", root / "b")
        start(logs, config)
        assert read_topic_id(logs.get("t", 0).directory) == uuid_text(TOPIC_ID)
        assert [name.split(".")[0] for name in os.listdir(root / second) if "stray" in name] == ["t-0"]
        logs.stop()


def test_start_without_descriptors_is_refused_and_no_directory_is_given_up(tmp_path: Path) -> None:
    logs, _ = make_logs(tmp_path / "a", tmp_path / "b")
    with descriptors.none_left(), pytest.raises(StorageError, match="raise the limit of open files"):
        logs.open_dirs()
    assert logs.failed_dirs == []

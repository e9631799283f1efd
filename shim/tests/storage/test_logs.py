"""The data directories: lock, identity, placement, deletion, laziness, clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import Faults
from kafka_shim.randomness import Randomness
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage import checkpoint, names
from kafka_shim.storage.data_dir import DataDir, read_topic_id
from kafka_shim.storage.directories import RETIRE_RETRY_MS
from kafka_shim.storage.logs import RECOVER_EVERY_MS, Logs
from kafka_shim.storage.partitions import SLICE
from kafka_shim.storage.results import StorageError
from kafka_shim.tests import descriptors
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, put, records, refused
from kafka_shim.tests.storage.fault_injection import Injector
from kafka_shim.tests.test_cost import Counter
from kafka_shim.uuids import uuid_text

CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAQ"


def make_logs(*paths: Path, node_id: int = 1) -> tuple[Logs, TopicConfig]:
    config = BrokerConfig(log_dirs=tuple(map(str, paths)), node_id=node_id)
    return Logs(config, VirtualClock(NOW_MS), Faults()), TopicConfig(config)


def start(logs: Logs, config: TopicConfig, cluster_id: str | None = None) -> str:
    cluster = logs.open_dirs(cluster_id)
    logs.start(lambda topic, partition: (TOPIC_ID, config, 0))
    return cluster


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
    with pytest.raises(StorageError, match=r"holds 1 partitions \(__cluster_metadata-0;"):
        Logs(config, VirtualClock(NOW_MS), Faults()).open_dirs()


def test_a_clean_stop_syncs_the_file_system_of_the_metadata_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = BrokerConfig(log_dirs=(str(tmp_path / "data"),), metadata_log_dir=str(tmp_path / "metadata"))
    logs = Logs(config, VirtualClock(NOW_MS), Faults())
    logs.open_dirs()
    topic = TopicConfig(config)
    logs.start(lambda name, partition: (TOPIC_ID, topic, 0))
    put(logs.open_metadata_log(), b"x")
    synced: list[str] = []
    monkeypatch.setattr("kafka_shim.storage.flusher.WHOLE_FROM_FILES", 1)
    monkeypatch.setattr("kafka_shim.storage.flusher.sync_file_system", synced.append)
    logs.stop()
    assert synced == [str(tmp_path / "data"), str(tmp_path / "metadata")]


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

    def no_memory(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "after", no_memory)
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
    disk.logs.checkpoint()
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


def test_clean_stop_leaves_kafkas_files(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", b"b", pid=1, seq=0)
    log.delete_records_before(1)
    disk.logs.broker_epoch = 11
    disk.stop()
    assert (disk.path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":11}'
    assert (disk.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert (disk.path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    assert (disk.path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
    assert disk.files() == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{2:020d}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    disk.open()
    assert not (disk.path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("ending", ["stop", "crash"])
def test_every_segment_has_its_index_files_whatever_ends_the_broker(
    make_disk: Callable[..., Disk], ending: str
) -> None:
    disk = make_disk({"cleanup.policy": "compact,delete"})
    log = disk.open()

    def bare() -> list[str]:
        files = disk.files()
        logs = [name.removesuffix(".log") for name in files if name.endswith(".log")]
        return [f"{base}{end}" for base in logs for end in (".index", ".timeindex") if f"{base}{end}" not in files]

    for step in range(4):
        put(log, b"a", key=b"k")
        assert bare() == []
        if step % 2:
            log.roll(NOW_MS)  # an empty segment
            assert bare() == []
    disk.logs.cleaner.clean_now(log)
    assert bare() == []
    getattr(disk, ending)()
    assert bare() == []
    log = disk.open()
    assert log.max_timestamp().timestamp_ms == NOW_MS
    getattr(disk, ending)()
    assert bare() == []


def test_partitions_that_nobody_used_keep_their_checkpoints(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", b"b")
    log.delete_records_before(1)
    disk.stop()
    expected = {name: (disk.path / name).read_text() for name in os.listdir(disk.path) if name.endswith("checkpoint")}
    logs, config = make_logs(disk.path)
    start(logs, config)
    logs.checkpoint()
    logs.stop()
    assert {name: (disk.path / name).read_text() for name in expected} == expected


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


def test_open_files_are_bounded(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"segment.bytes": "1048576"})
    log = disk.open()
    disk.logs.services.files.limit = 3
    for _ in range(100):
        put(log, b"z" * 200_000)
    assert len(log.segments) > 10
    assert len(records(log)) == 100
    assert len(disk.logs.services.files) <= 3


def test_configuration_changes_reach_loaded_partitions(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    disk.logs.configure("t", 1, TopicConfig(disk.logs.config, {"max.message.bytes": "100"}))
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        put(log, b"z" * 200)


def test_a_changed_topic_costs_the_same_beside_many_others(tmp_path: Path) -> None:
    """A request that changed a thousand topics looked at every used partition for each of them."""
    logs, config = make_logs(tmp_path)
    start(logs, config)
    changed = logs.create("t", TOPIC_ID, 0, config)
    counts = []
    for others in (0, 1, 50):  # Python 3.12 tells a thread's first tracer of no instruction
        for partition in range(others):
            logs.create("others", TOPIC_ID, partition, config)
        counter = Counter()
        given = TopicConfig(logs.config, {"max.message.bytes": str(others)})
        counter.begin()
        logs.configure("t", 1, given)
        counter.end()
        assert changed.config is given
        counts.append(counter.count)
    assert 0 < counts[1] == counts[2]


def test_metadata_log_is_opened_apart_and_found_again(tmp_path: Path) -> None:
    from kafka_shim.cext.records import build

    logs, config = make_logs(tmp_path)
    logs.open_dirs()
    log = logs.open_metadata_log()
    log.append_batch(build([(None, b"x", NOW_MS, ())]), now_ms=NOW_MS)
    logs.start(lambda topic, partition: (TOPIC_ID, config, 0))
    assert logs.names() == []
    logs.stop()
    assert read_topic_id(str(tmp_path / "__cluster_metadata-0")) == "AAAAAAAAAAAAAAAAAAAAAQ"
    logs, config = make_logs(tmp_path)
    logs.open_dirs()
    assert logs.open_metadata_log().log_end_offset == 1
    logs.stop()


# --- checkpoints


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\nt 0 1\n", "0\n1\nt 0\n", "0\n1\nt x 1\n", "0\nx\nt 0 1\n"])
def test_malformed_checkpoints_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c"
    path.write_text(text)
    with pytest.raises(checkpoint.CheckpointError, match="c: "):
        checkpoint.read_offsets(str(path))


def test_checkpoints_round_trip_and_missing_ones_are_empty(tmp_path: Path) -> None:
    path = str(tmp_path / "c")
    assert checkpoint.read_offsets(path) == {}
    checkpoint.write_offsets(path, {("a", 1): 5, ("b.c-d", 0): 2**62}, sync=True)
    assert checkpoint.read_offsets(path) == {("a", 1): 5, ("b.c-d", 0): 2**62}
    assert (tmp_path / "c").read_text().startswith("0\n2\na 1 5\n")
    assert os.listdir(tmp_path) == ["c"]


def test_directory_names_are_read_as_kafka_does() -> None:
    assert names.partition_of("a-b-12") == ("a-b", 12)
    for other in ("a", "-1", "a-", "a-01", "a-1.abc-delete", "a-x", "cleaner-offset-checkpoint"):
        assert names.partition_of(other) is None


# --- out of descriptors


def stored_logs(disk: Disk) -> tuple[Logs, TopicConfig]:
    """A second life over three records of t-0, which nobody has used yet."""
    put(disk.open(), b"a", b"b", b"c")
    disk.stop()
    logs, config = make_logs(disk.path)
    start(logs, config)
    return logs, config


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


def test_stop_leaves_no_clean_mark_when_a_log_cannot_be_closed(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    put(disk.open(), b"a", pid=1, seq=0)

    def no_descriptor_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("kafka_shim.storage.producer_snapshot.write", no_descriptor_left)
    disk.stop()
    monkeypatch.undo()
    assert not (disk.path / ".kafka_cleanshutdown").exists()
    log = disk.open()
    assert log.log_end_offset == 1
    assert put(log, b"a", pid=1, seq=0).duplicate


def test_start_without_descriptors_is_refused_and_no_directory_is_given_up(tmp_path: Path) -> None:
    logs, _ = make_logs(tmp_path / "a", tmp_path / "b")
    with descriptors.none_left(), pytest.raises(StorageError, match="raise the limit of open files"):
        logs.open_dirs()
    assert logs.failed_dirs == []


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


def test_describing_many_partitions_loads_none_and_leaves_the_loop_to_others(tmp_path: Path) -> None:
    logs, config = make_logs(tmp_path)
    start(logs, config)
    for partition in range(300):
        logs.create("t", TOPIC_ID, partition, config)
    size_bytes = put(logs.get("t", 7), b"a").size_bytes
    logs.stop()
    logs, config = make_logs(tmp_path)
    start(logs, config)
    describing = logs.describe_dirs()
    turns = 0
    with pytest.raises(StopIteration) as answer:
        while True:
            describing.send(None)
            turns += 1
    (status,) = answer.value.value
    assert turns == 300 // SLICE
    assert len(status.partitions) == 300
    assert {partition: size for _, partition, size, _ in status.partitions if size} == {7: size_bytes}
    assert logs.loaded() == []
    logs.stop()

"""A clean stop: the files that it leaves and syncs, and when it leaves no mark."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.faults import Faults
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.descriptors import no_descriptor_left
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, make_logs, put, start


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
    logs.checkpoints.write_aside()
    logs.stop()
    assert {name: (disk.path / name).read_text() for name in expected} == expected


def test_stop_leaves_no_clean_mark_when_a_log_cannot_be_closed(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    put(disk.open(), b"a", pid=1, seq=0)
    monkeypatch.setattr("kafka_shim.storage.producer_snapshot.write", no_descriptor_left)
    disk.stop()
    monkeypatch.undo()
    assert not (disk.path / ".kafka_cleanshutdown").exists()
    log = disk.open()
    assert log.log_end_offset == 1
    assert put(log, b"a", pid=1, seq=0).duplicate


@pytest.mark.parametrize("error", [RuntimeError("of a bug"), MemoryError()])
def test_a_partition_that_cannot_be_closed_for_any_reason_keeps_no_other_one_from_its_clean_stop(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    disk = make_disk()
    first = disk.open()
    second = disk.logs.create("t", TOPIC_ID, 1, first.config)
    for log in (first, second):
        put(log, b"a", pid=1, seq=0)

    close = PartitionLog.close

    def fail(log: PartitionLog) -> list[str]:
        if log is first:
            raise error
        return close(log)

    monkeypatch.setattr(PartitionLog, "close", fail)
    disk.stop()
    assert (first.is_closed, second.is_closed) == (True, True)
    assert not (disk.path / ".kafka_cleanshutdown").exists()

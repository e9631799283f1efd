"""What is on the disk when: a power cut leaves only what was fsynced."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from kafka_shim.cext import builder
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import Faults
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.storage.logs import RECOVER_EVERY_MS
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.metadata.opened import Opened
from kafka_shim.tests.storage.conftest import records


def test_a_deleted_topic_keeps_its_directories_until_the_deletion_is_on_the_disk(tmp_path: Path) -> None:
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    broker.store.create_topic("t", 2)
    there: list[int] = []
    broker.store.delete_topic("t", later=True)
    faults.arm("log.before_fsync", lambda path: there.append(_count(tmp_path, "t-?")))
    asyncio.run(broker.store.await_log_changes())
    assert there
    assert set(there) == {2}
    assert (_count(tmp_path, "t-?"), _count(tmp_path, "t-*-delete")) == (0, 2)
    broker.stop()


def test_a_deletion_that_could_not_be_fsynced_is_finished_once_it_could(tmp_path: Path) -> None:
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    broker.logs.run_periodically()
    broker.store.create_topic("t", 2)
    broker.store.delete_topic("t", later=True)
    faults.arm("log.before_fsync", "oserror", "EIO")
    with pytest.raises(KafkaError, check=lambda err: err.code is ErrorCode.KAFKA_STORAGE_ERROR):
        asyncio.run(broker.store.await_log_changes())
    advance(broker, 5 * RECOVER_EVERY_MS)
    assert (_count(tmp_path, "t-?"), _count(tmp_path, "t-*-delete")) == (2, 0)
    faults.disarm()
    advance(broker, 5 * RECOVER_EVERY_MS)
    assert (_count(tmp_path, "t-?"), _count(tmp_path, "t-*-delete")) == (0, 0)
    broker.stop()


def test_a_stop_gives_up_no_directory_whose_deletion_it_cannot_fsync(tmp_path: Path) -> None:
    faults = Faults()
    broker = Opened(tmp_path, faults=faults).start()
    broker.store.create_topic("t", 2)
    broker.store.delete_topic("t", later=True)
    faults.arm("log.before_fsync", "oserror", "EIO")
    broker.stop()
    assert (_count(tmp_path, "t-?"), _count(tmp_path, "t-*-delete")) == (2, 0)


def test_a_topic_whose_deletion_a_power_cut_undid_has_its_records(tmp_path: Path) -> None:
    broker, on_disk = _deleted(tmp_path)
    advance(broker, 2000)
    broker.crash()
    os.truncate(_metadata(tmp_path), on_disk)
    broker = Opened(tmp_path).start()
    assert _values(broker) == [b"first"]
    broker.stop()


def test_a_topic_of_a_name_whose_deletion_cannot_be_fsynced_waits(tmp_path: Path) -> None:
    """It would take the directory of a topic that a power cut can bring back."""
    broker, on_disk = _deleted(tmp_path)
    broker.store.create_topics([("t", broker.store.decide_replicas(1, 1, ()), {})], later=True)
    broker.faults.arm("log.before_fsync", "oserror", "EIO")
    for _ in range(2):
        with pytest.raises(KafkaError, check=lambda err: err.code is ErrorCode.KAFKA_STORAGE_ERROR):
            _append(broker, b"a")
    shutil.copytree(tmp_path, cut := tmp_path.with_name("cut"))
    os.truncate(_metadata(cut), on_disk)
    broker.faults.disarm()
    advance(broker, 5 * RECOVER_EVERY_MS)
    _append(broker, b"b")
    assert _values(broker) == [b"b"]
    broker.stop()
    broker = Opened(cut).start()
    assert _values(broker) == [b"first"]
    broker.stop()


def test_a_topic_made_again_at_once_begins_when_the_deletion_is_on_the_disk(tmp_path: Path) -> None:
    broker, _ = _deleted(tmp_path)
    deleted = broker.logs.metadata_log.log_end_offset
    broker.store.create_topic("t", 1)
    _append(broker, b"second")
    assert broker.logs.metadata_log.recovery_point >= deleted
    assert _values(broker) == [b"second"]
    broker.stop()


@pytest.mark.parametrize("name", ["t", GROUP_METADATA_TOPIC])
def test_an_auto_created_topic_is_on_the_disk_before_its_records_are(tmp_path: Path, name: str) -> None:
    faults = Faults()
    broker = Opened(tmp_path, faults=faults, log_flush_interval_messages=50, offsets_topic_num_partitions=1).start()
    asyncio.run(broker.store.flushed())
    synced: list[str] = []
    faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    broker.store.auto_create_topic(name)
    log = broker.logs.get(name, 0)
    now_ms = broker.clock.now_ms()
    records = bytes(builder.build([(b"k", b"x", now_ms, [])] * 50))
    flushed = append_as_client(log, records, now_ms=now_ms, version=9).flushed
    assert flushed is not None
    flushed.result(60)
    of_metadata = str(tmp_path / "__cluster_metadata-0" / f"{0:020d}.log")
    assert synced.index(of_metadata) < synced.index(str(tmp_path / f"{name}-0" / f"{0:020d}.log"))
    broker.stop()


def _deleted(directory: Path) -> tuple[Opened, int]:
    """A broker that has deleted a topic with one record, and the size of its metadata log without the deletion, which
    is not on the disk."""
    broker = Opened(directory).start()
    broker.logs.run_periodically()
    broker.store.create_topic("t", 1, configs={"file.delete.delay.ms": "1000"})
    _append(broker, b"first")
    asyncio.run(broker.store.flushed())
    size_bytes = _metadata(directory).stat().st_size
    broker.store.delete_topic("t", later=True)
    return broker, size_bytes


def _metadata(directory: Path) -> Path:
    return directory / "__cluster_metadata-0" / f"{0:020d}.log"


def _append(broker: Opened, *values: bytes) -> None:
    now_ms = broker.clock.now_ms()
    for value in values:
        data = bytes(builder.build([(b"k", value, now_ms, [])]))
        append_as_client(broker.logs.get("t", 0), data, now_ms=now_ms, version=9)


def _values(broker: Opened) -> list[bytes | None]:
    return [value for _, value in records(broker.logs.get("t", 0))]


def advance(broker: Opened, time_ms: int) -> None:
    """Let time pass, and let the flusher's thread do what it brings."""
    for _ in range(time_ms // 1000):
        broker.clock.advance(1000)
        broker.logs.services.flusher.stop()


def _count(directory: Path, pattern: str) -> int:
    return len(list(directory.glob(pattern)))

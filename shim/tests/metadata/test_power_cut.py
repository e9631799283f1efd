"""What is on the disk when: a power cut leaves only what was fsynced."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_shim.cext import builder
from kafka_shim.faults import Faults
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.metadata.opened import Opened


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
    flushed.result(20)
    of_metadata = str(tmp_path / "__cluster_metadata-0" / f"{0:020d}.log")
    assert synced.index(of_metadata) < synced.index(str(tmp_path / f"{name}-0" / f"{0:020d}.log"))
    broker.stop()


def _count(directory: Path, pattern: str) -> int:
    return len(list(directory.glob(pattern)))

"""What is on the disk when: a power cut leaves only what was fsynced."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kafka_shim.faults import Faults
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


def _count(directory: Path, pattern: str) -> int:
    return len(list(directory.glob(pattern)))

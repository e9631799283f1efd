"""Memory that ends in an append, an fsync, a roll or a reopening: what is refused leaves nothing, what is due is done
later."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.local_log import LocalLog
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.reopening import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from kafka_shim.storage.services import LogServices
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, put, records, refused


@pytest.mark.parametrize(
    "step",
    [
        "cext.segment.append",
        "storage.index.IndexFile.add",
        "storage.producers.Producers.apply_data",
        "storage.local_log.LocalLog.request_flush",
    ],
)
def test_an_append_that_finds_no_memory_on_the_way_leaves_nothing(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Wherever it is: before the write, after it, or after the batch counts."""
    disk = make_disk({"index.interval.bytes": "1", "flush.messages": "1"})
    put(disk.open(), b"a", pid=1, seq=0)
    disk.stop()  # the first entry of an index that was stored is not added in C
    log = disk.open()
    disk.logs.run_periodically()
    put(log, b"a", pid=1, seq=1)
    with monkeypatch.context() as patch:
        patch.setattr(f"kafka_shim.{step}", no_memory_left)
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            put(log, b"refused", pid=1, seq=2)
    disk.clock.advance(1000)
    assert records(log) == [(0, b"a"), (1, b"a")]
    assert put(log, b"b", pid=1, seq=2).base_offset == 2
    disk.crash()
    assert records(disk.open()) == [(0, b"a"), (1, b"a"), (2, b"b")]


@pytest.mark.parametrize("step", ["producers.Producers.apply_marker", "txn_index.TxnIndex.append"])
def test_a_marker_that_finds_no_memory_on_the_way_leaves_nothing(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    disk = make_disk()
    log = disk.open()
    disk.logs.run_periodically()
    put(log, b"a", pid=7, seq=0, txn=True)
    with monkeypatch.context() as patch:
        patch.setattr(f"kafka_shim.storage.{step}", no_memory_left)
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            end(log, 7, 0, commit=False)
    disk.clock.advance(1000)
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0), "the transaction is still open"
    assert end(log, 7, 0, commit=False) == 1
    assert records(log, isolation=1) == []


@pytest.mark.parametrize("owner, step", [(PartitionLog, "request_flush"), (Flusher, "sync")])
def test_flush_ms_holds_although_memory_ended_when_it_was_due(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, owner: type, step: str
) -> None:
    disk = make_disk({"flush.ms": "1000"})
    log = disk.open()
    disk.logs.run_periodically()
    put(log, b"a")
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, no_memory_left)
        with pytest.raises(MemoryError):
            disk.clock.advance(3000)
    assert log.unflushed_since_ms >= 0
    disk.clock.advance(1000)
    assert log.unflushed_since_ms < 0
    disk.logs.services.flusher.stop()
    disk.clock.advance(1000)
    assert not disk.logs.tasks.scheduler.is_scheduled("flush")
    assert log.recovery_point == 1


@pytest.mark.parametrize("compression", ["producer", "gzip"], ids=["plain", "checked"])
@pytest.mark.parametrize("owner, step", [(LocalLog, "want_flush"), (LogServices, "wish_flush"), (Scheduler, "every")])
def test_an_append_whose_fsync_finds_no_memory_to_be_noted_is_one_all_the_same(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, owner: type, step: str, compression: str
) -> None:
    """Its producer was told that the records are not stored, and the partition was offline until it was recovered."""
    disk = make_disk({"flush.ms": "1000", "compression.type": compression})
    log = disk.open()
    disk.logs.run_periodically()
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, no_memory_left)
        assert put(log, b"a").base_offset == 0
    assert not log.is_offline
    disk.clock.advance(LONGEST_PAUSE_MS)
    disk.clock.advance(1000)
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 1


def test_the_next_roll_syncs_the_segment_of_one_that_found_no_memory(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rolls of retention too, after which the partition stays online. Every later fsync began behind that segment, and
    the recovery point stayed before it."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    with monkeypatch.context() as patch:
        patch.setattr(Flusher, "sync_later", no_memory_left)
        with pytest.raises(MemoryError):
            log.roll(NOW_MS)
    put(log, b"b")
    log.roll(NOW_MS)
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 2


def test_a_partition_is_opened_again_although_memory_ended_when_that_was_to_be_tried(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    log = disk.open()
    disk.logs.run_periodically()
    disk.faults.arm("log.after_write", "oserror", "EIO", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"refused")
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.reopening.reopen", no_memory_left)
        patch.setattr(Scheduler, "after", no_memory_left)
        with pytest.raises(MemoryError):
            disk.clock.advance(FIRST_PAUSE_MS)
    disk.clock.advance(LONGEST_PAUSE_MS + FIRST_PAUSE_MS)
    assert not disk.logs.is_offline("t", 0)


@pytest.mark.parametrize(
    "producer", [{}, {"pid": 1, "epoch": 0, "seq": 0, "txn": True}], ids=["plain", "transactional"]
)
def test_an_append_whose_readers_find_no_memory_is_one_all_the_same(
    make_disk: Callable[..., Disk], producer: dict[str, Any]
) -> None:
    """Its producer was told that the records are not stored, and the partition was offline until it was recovered."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    heard: list[int] = []
    log.subscribe(no_memory_left)
    log.subscribe(lambda: heard.append(log.log_end_offset))
    assert put(log, b"b", **producer).base_offset == 1
    if producer:
        assert end(log, 1, 0, commit=True) == 2
    assert not log.is_offline
    assert heard == [2, 3][: 1 + bool(producer)]
    assert [value for _, value in records(log)] == [b"a", b"b"]


# The hooks are the whole process's, so this one is a child.
WITHOUT_MEMORY = """
import _testcapi
from kafka_shim.cext.log_base import LogBase

log, told = LogBase.__new__(LogBase), [[number] for number in range(100)]
log._readers = {one.clear: None for one in told}
wake = log._wake
_testcapi.set_nomemory(0, 0)
try:
    wake()
finally:
    _testcapi.remove_mem_hooks()
print(any(told))
"""


def test_readers_hear_of_a_change_also_where_no_list_of_them_can_be_made() -> None:
    """A fetch session that did not hear would leave the partition out of its answers until the next append."""
    pytest.importorskip("_testcapi")  # some Pythons come without it
    ran = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "False\n"), ran.stderr


# As WITHOUT_MEMORY.
NOT_APPENDED = """
import _testcapi
from kafka_shim.embedded import Broker
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection

def refuse(log):
    error = MemoryError()
    end = log.log_end_offset
    _testcapi.set_nomemory(0, 0)
    try:
        log.not_appended(end, error)
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()

with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers, timeout_s=60) as client:
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a"))
    logs = broker.state.logs
    log = logs.get("t", 0)
    broker.call(refuse, log)
    print(log.is_offline, log in logs.services.offline)
    broker.clock.advance(60_000)
    broker.call(logs.reopen_offline)
    print(log.is_offline, log.log_end_offset)
"""


def test_a_partition_is_offline_also_where_there_is_no_memory_to_say_so() -> None:
    """The batch of the failed append stays in the file, and the next one would follow it with the same offset: a start
    reads none that comes later."""
    pytest.importorskip("_testcapi")  # some Pythons come without it
    ran = subprocess.run([sys.executable, "-c", NOT_APPENDED], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "True True\nFalse 1\n"), ran.stderr[-3000:]


# As WITHOUT_MEMORY.
NOT_ENDED = """
import _testcapi
from kafka_shim.clock import RealClock
from kafka_shim.faults import Faults
from kafka_shim.storage.flusher import Flusher, Sync, _nothing

def without_memory():
    _testcapi.set_nomemory(0, 0)
    raise MemoryError

flusher = Flusher(Faults(), RealClock())
sync = Sync([], without_memory, None)
try:
    flusher._do(sync, 1, _nothing)
except MemoryError:
    left = True
finally:
    _testcapi.remove_mem_hooks()
print(left, sync.done.done())
"""


def test_the_thread_of_fsyncs_leaves_a_task_that_it_has_no_memory_to_end() -> None:
    """CPython tried for ever to leave it, with the GIL. The thread begins the task again."""
    pytest.importorskip("_testcapi")  # some Pythons come without it
    ran = subprocess.run([sys.executable, "-c", NOT_ENDED], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, "True False\n"), ran.stderr[-3000:]

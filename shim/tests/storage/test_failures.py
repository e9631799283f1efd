"""A full disk, an I/O error, fsync: nothing acknowledged is lost, the partition goes offline."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.line_limit import MAX_LINES, PERIOD_MS
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage import names, recovery
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.reopening import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, batch, end, put, records, refused


def test_failed_write_takes_the_partition_offline_and_leaves_the_rest(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0)
    other = disk.logs.create("u", bytes(16), 0, log.config)
    woken: list[bool] = []
    log.subscribe(lambda: woken.append(True))
    disk.faults.arm("log.before_write", "oserror", "EIO", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b", pid=1, seq=1)
    assert woken == [True]
    for attempt in (lambda: put(log, b"b"), lambda: log.read(0, 10), lambda: disk.logs.get("t", 0), log.latest):
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            attempt()
    assert disk.logs.find("t", 0) is None
    assert disk.logs.is_offline("t", 0)
    assert put(other, b"x").base_offset == 0
    disk.stop()
    assert not (disk.path / ".kafka_cleanshutdown").exists()
    log = disk.open()
    assert records(log) == [(0, b"a")]
    assert put(log, b"b", pid=1, seq=1).base_offset == 1


def test_write_that_failed_after_the_bytes_is_settled_by_recovery(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0)
    disk.faults.arm("log.after_write", "oserror", "EIO", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b", pid=1, seq=1)
    assert log.log_end_offset == 1
    disk.stop()
    # It was never acknowledged, so it may be there; then its retry is a duplicate, not a second copy.
    log = disk.open()
    again = put(log, b"b", pid=1, seq=1)
    assert (again.base_offset, log.log_end_offset) == (1, 2)


def no_descriptor_left(*_: object, **__: object) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def no_memory_left(*_: object, **__: object) -> None:
    raise MemoryError


def test_append_that_cannot_read_its_index_leaves_no_bytes(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.stop()
    log = disk.open()  # its greatest timestamp is in the time index alone
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.index.IndexFile._read", no_descriptor_left)
        for _ in range(3):
            with refused(ErrorCode.KAFKA_STORAGE_ERROR):
                put(log, b"refused")
    assert put(log, b"c").base_offset == 1
    disk.crash()
    assert records(disk.open()) == [(0, b"a"), (1, b"c")]


def test_index_that_could_not_be_loaded_is_loaded_at_the_next_use(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk({"index.interval.bytes": "0"})
    log = disk.open()
    for _ in range(5):
        put(log, b"a")
    disk.stop()
    log = disk.open()
    segment = log.active
    segment.abandon()
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.index.IndexFile._attach", no_descriptor_left)
        for _ in range(3):
            for index in ("offset_index", "time_index"):
                with pytest.raises(OSError, match="open files"):
                    getattr(segment, index)
            with refused(ErrorCode.KAFKA_STORAGE_ERROR):
                put(log, b"refused")
    assert segment.offset_index.count >= 3
    assert put(log, b"c").base_offset == 5
    disk.stop()
    assert [value for _, value in records(disk.open())] == [b"a"] * 5 + [b"c"]


def test_write_that_cannot_be_cut_back_takes_the_partition_offline(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    with monkeypatch.context() as patch, refused(ErrorCode.KAFKA_STORAGE_ERROR):
        patch.setattr("kafka_shim.cext.segment.append", no_descriptor_left)
        patch.setattr("os.ftruncate", no_descriptor_left)
        put(log, b"refused")
    assert log.is_offline


def test_partition_that_met_an_error_is_opened_again_without_a_restart(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0)
    guard = log.start_verification(9, 0, 0, False)
    woken: list[bool] = []
    log.subscribe(lambda: woken.append(True))
    disk.logs.run_periodically()
    disk.faults.arm("log.after_write", "oserror", "EIO", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"refused", pid=1, seq=1)
    assert disk.logs.is_offline("t", 0)
    disk.clock.advance(999)
    assert disk.logs.is_offline("t", 0)
    disk.clock.advance(1)
    assert not disk.logs.is_offline("t", 0)
    assert disk.logs.get("t", 0) is log
    assert records(log) == [(0, b"a")], "what was refused is not kept"
    assert woken == [True, True]
    assert put(log, b"b", pid=1, seq=1).base_offset == 1
    data = batch(b"c", pid=9, seq=0, txn=True)
    assert append_as_client(log, data, now_ms=NOW_MS, version=11, verification=guard).base_offset == 2
    disk.stop()
    assert (disk.path / ".kafka_cleanshutdown").exists()
    assert len(records(disk.open())) == 3


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


def test_pause_of_a_partition_that_stays_offline_grows(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    disk.logs.run_periodically()
    tried_ms: list[int] = []

    def broken(*_: object) -> None:
        tried_ms.append(disk.clock.monotonic_ms())
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.recovery.load", broken)
        log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
        disk.clock.advance(200_000)
    assert tried_ms == [1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000]
    disk.clock.advance(60_000)
    assert records(log) == [(0, b"a")]


def test_failed_sync_is_made_good_by_writing_the_bytes_again(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    disk.faults.arm("log.before_fsync", "oserror", "ENOSPC")
    with pytest.raises(OSError, match="No space"):
        put(log, b"a").flushed.result(timeout=10)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b")
    disk.faults.disarm()
    before_ns = os.stat(log.active.path(".log")).st_mtime_ns
    assert disk.logs.reopen_offline()
    assert os.stat(log.active.path(".log")).st_mtime_ns > before_ns, "the kernel takes lost pages for written"
    put(log, b"c").flushed.result(timeout=10)
    assert (log.recovery_point, records(log)) == (2, [(0, b"a"), (1, b"c")])


@pytest.mark.parametrize("number", ["ENOSPC", "EDQUOT", "EFBIG", "ENOMEM"])
def test_refused_write_leaves_the_partition_online(make_disk: Callable[..., Disk], number: str) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    disk.faults.arm("log.before_write", "oserror", number, nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b")
    assert records(log) == [(0, b"a")]
    assert put(log, b"c").base_offset == 1


def test_a_full_disk_does_not_write_a_line_for_each_request(
    make_disk: Callable[..., Disk], caplog: pytest.LogCaptureFixture
) -> None:
    disk = make_disk()
    log = disk.open()
    disk.faults.arm("log.before_write", "oserror", "ENOSPC")
    for _ in range(MAX_LINES + 20):
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            put(log, b"a")
    refusals = [one.getMessage() for one in caplog.records if "refuses what is written" in one.getMessage()]
    assert len(refusals) == MAX_LINES
    disk.clock.advance(PERIOD_MS)
    assert "20 further lines like those before were left out" in caplog.text


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import KafkaError
from kafka_shim.faults import Faults
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, batch
config = BrokerConfig(log_dirs=(sys.argv[1],))
topic = TopicConfig(config)
logs = Logs(config, VirtualClock(NOW_MS), Faults())
logs.open_dirs()
logs.start(lambda name, partition: (TOPIC_ID, topic, 0))
log = logs.create("t", TOPIC_ID, 0, topic)
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
number = 0
try:
    while True:
        append_as_client(log, batch(b"%d" % number + b"z" * 9000, pid=1, seq=number), now_ms=NOW_MS, version=12)
        number += 1
        assert number < 5000
except KafkaError as err:
    print(number, err.code.name, log.is_offline)
logs.stop()
"""


def run_limited(path: Path, *limit: str) -> tuple[int, str]:
    command = [sys.executable, "-c", LIMITED, str(path), *limit]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3], timeout=60
    )
    count, code, offline = done.stdout.split()
    assert offline == "False", "a full disk refuses a write and damages nothing"
    return int(count), code


def test_partial_write_at_a_size_limit_is_cut_back(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    limit = 1_000_000
    count, code = run_limited(disk.path, str(limit))
    sizes = [len(batch(b"%d" % number + b"z" * 9000, pid=1, seq=number)) for number in range(count + 1)]
    assert sum(sizes[:-1]) <= limit < sum(sizes), "the last write is the first that does not fit"
    assert code == "KAFKA_STORAGE_ERROR"
    assert (disk.partition / f"{0:020d}.log").stat().st_size == sum(sizes[:-1]), "cut back before it is answered"
    log = disk.open()
    assert log.log_end_offset == count
    assert [int((value or b"").split(b"z")[0]) for _, value in records(log)] == list(range(count))
    assert put(log, b"next", pid=1, seq=count).base_offset == count


@pytest.fixture
def full_disk(tmp_path: Path) -> object:
    """A file system of 2 MB; where mounting is not allowed the size limit above is the test of the same code."""
    path = tmp_path / "small"
    path.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting needs root")
    if subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", path], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting is not allowed here")
    yield path
    subprocess.run(["umount", path], check=True)


def test_full_disk_loses_nothing_acknowledged(make_disk: Callable[..., Disk], full_disk: Path) -> None:
    count, code = run_limited(full_disk)
    assert code == "KAFKA_STORAGE_ERROR"
    assert count > 100
    disk = make_disk()
    shutil.copytree(full_disk, disk.path)
    log = disk.open()
    assert log.log_end_offset == count
    assert len(records(log)) == count


def test_failed_store_of_the_aborted_index_takes_the_partition_offline(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0, txn=True)
    (disk.partition / f"{0:020d}.txnindex").mkdir()
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.append_marker(1, 0, 0, False, 1, NOW_MS)
    disk.stop()
    (disk.partition / f"{0:020d}.txnindex").rmdir()
    log = disk.open()
    assert (log.log_end_offset, log.last_stable_offset) == (2, 2)
    assert log.read(0, 100, isolation_level=1).aborted == [(1, 0)]


@pytest.mark.parametrize("flaw", ["descriptors", "content"])
def test_aborted_data_is_not_shown_when_its_index_cannot_be_opened(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0, txn=True)
    index = disk.partition / f"{0:020d}.txnindex"

    if flaw == "content":
        index.write_bytes(b"\xff" * 34)
    else:
        monkeypatch.setattr("kafka_shim.storage.txn_index.TxnIndex.append", no_descriptor_left)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.append_marker(1, 0, 0, False, 1, NOW_MS)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.read(0, 100, isolation_level=1)
    monkeypatch.undo()
    disk.stop()
    if flaw == "content":
        index.unlink()
    log = disk.open()
    assert (log.log_end_offset, log.last_stable_offset) == (2, 2)
    assert log.read(0, 100, isolation_level=1).aborted == [(1, 0)]


DAMAGED = [names.INDEX, names.TIME_INDEX, names.TXN_INDEX]


@pytest.mark.parametrize("suffix", DAMAGED)
@pytest.mark.parametrize("content", [b"\xff" * 408, b"\x7f" * 408, b"\x01" * 408, b"\0" * 408, b"\xff" * 7, b""])
def test_damaged_index_costs_its_partition_alone_and_is_made_anew(
    make_disk: Callable[..., Disk], suffix: str, content: bytes
) -> None:
    disk = make_disk({"segment.bytes": "1048576", "index.interval.bytes": "1000"})
    log = disk.open()
    put(log, b"a", pid=1, seq=0, txn=True)
    log.append_marker(1, 0, 0, False, 1, NOW_MS)
    while len(log.segments) < 3:
        put(log, b"z" * 300_000)
    everything = records(log, isolation=1)
    disk.stop()
    (disk.partition / f"{0:020d}{suffix}").write_bytes(content)
    log = disk.open()
    for attempt in (
        lambda: records(log, isolation=1),
        lambda: log.offset_for_timestamp(NOW_MS),
        lambda: log.read(2, 100, isolation_level=1),
        log.max_timestamp,
        lambda: disk.logs.retain(NOW_MS),
    ):
        with contextlib.suppress(KafkaError):  # nothing else: one partition must not fail a whole Fetch
            attempt()
    was_offline = log.is_offline
    disk.stop()
    log = disk.open()
    if was_offline:
        assert records(log, isolation=1) == everything


# --- fsync


@pytest.mark.option("topic:flush.messages")
def test_flush_messages_gives_a_future_that_is_done_after_the_sync(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "3"})
    log = disk.open()
    assert put(log, b"a", b"b").flushed is None
    appended = put(log, b"c")
    appended.flushed.result(timeout=10)
    assert log.recovery_point == 3
    assert put(log, b"d").flushed is None


def test_a_retry_waits_for_the_disk_as_its_first_attempt_does(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    may_sync = threading.Event()
    disk.faults.arm("log.before_fsync", lambda **_: may_sync.wait(10))
    put(log, b"a", pid=1, seq=0)
    retry = put(log, b"a", pid=1, seq=0)
    assert retry.duplicate
    assert not retry.flushed.done()
    may_sync.set()
    retry.flushed.result(timeout=10)
    assert put(log, b"a", pid=1, seq=0).flushed is None, "it is on the disk already"


def test_failed_sync_is_the_futures_error(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    disk.faults.arm("log.before_fsync", "oserror", "EIO")
    with pytest.raises(OSError, match="Input/output") as caught:
        put(log, b"a").flushed.result(timeout=10)
    assert caught.value.errno == errno.EIO
    assert log.recovery_point == 0
    disk.faults.disarm()
    # The kernel tells of lost pages once: a later sync that succeeds proves nothing.
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b")
    disk.stop()
    assert not (disk.path / ".kafka_cleanshutdown").exists()


def held_syncs(disk: Disk, log: PartitionLog) -> tuple[list[threading.Event], list[threading.Event]]:
    """Two fsyncs of the log under way: each waits for its event of the second list, and the first fails then."""
    begun, released = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]
    calls: list[int] = []

    def act(path: str) -> None:
        number = len(calls)
        calls.append(number)
        if number < 2:
            begun[number].set()
            assert released[number].wait(20)
        if number == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    disk.faults.arm("log.before_fsync", act, where={"path": log.active.path(".log")})
    return begun, released


def test_a_sync_after_a_failed_one_declares_nothing_durable(make_disk: Callable[..., Disk]) -> None:
    """Linux reports lost pages once: the second fsync succeeds without those that the first lost."""
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    begun, released = held_syncs(disk, log)
    first = put(log, b"a").flushed
    assert begun[0].wait(20)
    second = put(log, b"b").flushed
    for event in released:
        event.set()
    for future in (first, second):
        with pytest.raises(OSError, match=r"Input/output|earlier fsync"):
            future.result(timeout=10)
    assert log.recovery_point == 0
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.read(0, 100)
    assert disk.logs.reopen_offline()
    put(log, b"c").flushed.result(timeout=10)
    assert (log.recovery_point, records(log)) == (3, [(0, b"a"), (1, b"b"), (2, b"c")])


def test_a_sync_that_outlives_a_reopening_declares_nothing_durable(make_disk: Callable[..., Disk]) -> None:
    """It may have begun before the lost bytes were written again."""
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    begun, released = held_syncs(disk, log)
    first = put(log, b"a").flushed
    assert begun[0].wait(20)
    second = put(log, b"b").flushed
    released[0].set()
    with pytest.raises(OSError, match="Input/output"):
        first.result(timeout=10)
    assert begun[1].wait(20)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.read(0, 100)
    assert disk.logs.reopen_offline()
    released[1].set()
    with pytest.raises(OSError, match="an earlier fsync failed"):
        second.result(timeout=10)
    assert (log.recovery_point, log.is_offline) == (0, False)
    put(log, b"c").flushed.result(timeout=10)
    assert (log.recovery_point, records(log)) == (3, [(0, b"a"), (1, b"b"), (2, b"c")])


def test_a_sync_that_fails_during_a_reopening_keeps_the_partition_offline(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes were written again before it, so it may have dropped them once more."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
    load = recovery.load

    def load_and_fail_a_sync(*arguments: Any) -> None:
        load(*arguments)
        with pytest.raises(OSError, match="Input/output"):
            log.request_flush().result(timeout=10)

    disk.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.recovery.load", load_and_fail_a_sync)
        assert not disk.logs.reopen_offline()
    assert (log.is_offline, log.recovery_point) == (True, 0)
    assert log.sync_error is not None
    disk.faults.disarm()
    before_ns = os.stat(log.active.path(".log")).st_mtime_ns
    assert disk.logs.reopen_offline()
    assert os.stat(log.active.path(".log")).st_mtime_ns > before_ns, "the bytes are written again"
    log.request_flush().result(timeout=10)
    assert (log.recovery_point, records(log)) == (1, [(0, b"a")])


def test_a_sync_that_fails_as_the_partition_comes_back_is_found_at_its_next_use(
    make_disk: Callable[..., Disk],
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
    before = log.sync_round
    disk.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    with pytest.raises(OSError, match="Input/output"):
        log.request_flush().result(timeout=10)
    log.came_back(before)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"b")
    assert log.is_offline
    assert disk.logs.reopen_offline()
    assert records(log) == [(0, b"a")]


def test_sync_without_a_descriptor_concerns_its_own_request_alone(
    make_disk: Callable[..., Disk], caplog: pytest.LogCaptureFixture
) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    disk.faults.arm("log.before_fsync", "oserror", "EMFILE")
    with pytest.raises(OSError, match="open files"):
        put(log, b"a").flushed.result(timeout=10)
    disk.faults.disarm()
    caplog.clear()
    for _ in range(3):
        put(log, b"b").flushed.result(timeout=10)
        log.latest()
    assert log.recovery_point == 4
    assert not caplog.records


def test_a_closed_segment_whose_sync_had_no_descriptor_is_synced_by_the_next_one(
    make_disk: Callable[..., Disk],
) -> None:
    """The recovery point passes it then: after a power cut nobody would look at it."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    first = log.active.path(".log")
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", "oserror", "EMFILE", where={"path": first})
    log.roll(NOW_MS)
    put(log, b"b")
    disk.logs.services.flusher.run(lambda: None)
    disk.logs.services.flusher.stop()
    assert (log.recovery_point, log.is_offline) == (0, False)
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    log.roll(NOW_MS)
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 2
    assert first in synced


def test_flush_after_a_roll_syncs_the_indexes_of_a_segment_whose_records_were_flushed(
    make_disk: Callable[..., Disk],
) -> None:
    """The recovery point passes it then. After a power cut a lost index would give read_committed consumers what was
    aborted."""
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    put(log, b"aborted", pid=7, seq=0, txn=True)
    end(log, 7, 0, commit=False)
    log.request_flush().result(timeout=10)
    index = log.active.path(names.TXN_INDEX)
    disk.faults.arm("log.before_fsync", "oserror", "EMFILE", where={"path": index}, nth=1)
    log.roll(NOW_MS)
    disk.logs.services.flusher.stop()
    assert (log.recovery_point, log.is_offline) == (2, False)
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    put(log, b"b").flushed.result(timeout=10)
    assert log.recovery_point == 3
    assert {index, str(disk.partition / names.file_name(2, names.SNAPSHOT))} <= set(synced)


def test_process_out_of_descriptors_keeps_its_partitions(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    others = [disk.logs.create("u", bytes(16), number, log.config) for number in range(20)]
    for other in others:
        put(other, b"a")
    others[-1].active.close_file()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, limit[1]))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        put(others[-1], b"a")  # segments give descriptors up
        for segment in list(disk.logs.services.files._holders):
            segment.close_file()
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            put(log, b"b")
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert put(log, b"b").base_offset == 1
    assert len(records(others[0])) == 1


def test_roll_syncs_the_closed_segment_off_the_loop(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"segment.bytes": "1048576"})
    log = disk.open()
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(os.path.basename(path)))
    for _ in range(11):
        put(log, b"z" * 100_000)
    disk.logs.services.flusher.stop()
    assert f"{0:020d}.log" in synced
    assert f"{10:020d}.snapshot" in synced
    assert os.path.basename(log.directory) in synced
    assert log.recovery_point == 10


def test_the_name_of_a_new_segment_is_synced_with_its_first_records(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.messages": "1"})
    log = disk.open()
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    for roll in (False, True):
        if roll:
            log.roll(NOW_MS)
            disk.logs.services.flusher.sync_later([]).result(20)
        for expected in (1, 0):
            synced.clear()
            put(log, b"a").flushed.result(timeout=10)
            assert synced.count(log.directory) == expected


def test_rolls_that_a_slow_disk_does_not_keep_up_with_request_each_segment_once(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    may_sync, synced = threading.Event(), []

    def reach(path: str) -> None:
        may_sync.wait(20)
        synced.append(os.path.basename(path))

    disk.faults.arm("log.before_fsync", reach)
    for _ in range(10):
        put(log, b"a")
        log.roll(NOW_MS)
    # Who waits gets what is to be synced before it too, and does not wait for the rolls.
    put(log, b"a")
    flushed = log.request_flush()
    may_sync.set()
    flushed.result(20)
    assert log.recovery_point == 11
    assert f"{10:020d}.snapshot" in synced
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 11
    logs = [name for name in synced if name.endswith(".log")]
    assert set(logs) == {f"{offset:020d}.log" for offset in range(11)}
    # By its roll, and by the one who waited.
    assert max(map(logs.count, logs)) == 2


def test_wishes_of_one_group_sync_a_file_once(make_disk: Callable[..., Disk], tmp_path: Path) -> None:
    disk = make_disk()
    disk.open()
    flusher = disk.logs.services.flusher
    (tmp_path / "f").write_text("x")
    calls: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: calls.append(path))  # noqa: PLW0108  (called by keyword)
    futures = []
    wished = threading.Event()

    def wish() -> None:
        futures.extend(flusher.sync([str(tmp_path / "f")]) for _ in range(5))
        wished.set()

    flusher.run(wish)
    # What is wished after the stop is nobody's.
    assert wished.wait(20)
    flusher.stop()
    assert [future.result(timeout=10) for future in futures] == [None] * 5
    assert len(calls) == 1


def full_disk_once(patch: pytest.MonkeyPatch, where: str) -> None:
    """The next call of the function `where` meets a full disk."""
    module, _, name = where.rpartition(".")
    original = getattr(sys.modules[module], name)

    def fail(*arguments: object, **options: object) -> None:
        patch.setattr(where, original)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patch.setattr(where, fail)


def test_deleted_records_that_could_not_be_stored_are_deleted_by_the_retry(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    log = disk.open()
    for value in (b"a", b"b", b"c"):
        put(log, value)
    full_disk_once(monkeypatch, "kafka_shim.storage.checkpoint.write_offsets")
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.delete_records_before(2)
    assert log.log_start_offset == 0
    assert log.delete_records_before(2) == 2
    disk.crash()
    assert disk.open().log_start_offset == 2


def test_a_failed_sync_in_the_background_is_not_clean_at_the_stop(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    disk.faults.arm("log.before_fsync", "oserror", "EIO", nth=1)
    failed, later = log.request_flush(), log.request_flush()
    with pytest.raises(OSError, match="Input/output"):
        failed.result(timeout=10)
    with contextlib.suppress(OSError):
        later.result(timeout=10)
    assert log.recovery_point == 0
    disk.stop()
    assert not (disk.path / ".kafka_cleanshutdown").exists()


def test_a_partition_that_cannot_be_loaded_is_tried_with_growing_pauses(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.stop()
    tried_ms: list[int] = []

    def broken(*_: object) -> None:
        tried_ms.append(disk.clock.monotonic_ms())
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.recovery.load", broken)
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            disk.open()
        assert disk.logs is not None
        disk.logs.run_periodically()
        began_ms = disk.clock.monotonic_ms()
        del tried_ms[:]
        disk.clock.advance(40_000)
    assert [at - began_ms for at in tried_ms] == [1000, 3000, 7000, 15_000, 31_000]
    disk.clock.advance(60_000)
    assert records(disk.logs.get("t", 0)) == [(0, b"a")]

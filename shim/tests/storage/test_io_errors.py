"""A write, a read or an index that fails: its partition alone goes offline, loses nothing that was acknowledged, and is
opened again."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.storage import names
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.appends import append_as_client, start_verification
from kafka_shim.tests.descriptors import no_descriptor_left
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, batch, failing_loads, put, records, refused


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


def broken(**_: object) -> None:
    raise RuntimeError("of a test")


def refusing_points(way: str) -> tuple[str, ...]:
    """Where an error refuses an append although the batch is written."""
    return ("log.after_write",) if way == "of a client" else ("log.after_write", "log.after_append")


def append_refused(disk: Disk, log: PartitionLog, way: str, point: str, action: Any) -> None:
    disk.faults.arm(point, action, nth=1)
    with pytest.raises((KafkaError, OSError, DisconnectError, RuntimeError)):
        if way == "of a client":
            put(log, b"refused")
        elif way == "of the broker":
            log.append_batch(batch(b"refused"), now_ms=NOW_MS)
        else:
            log.append_marker(1, 0, 0, True, 1, NOW_MS)
    disk.faults.disarm()


@pytest.mark.parametrize("action", ["error", "drop", "oserror", broken])
@pytest.mark.parametrize("way", ["of a client", "of the broker", "a marker"])
def test_a_batch_that_a_fault_refused_behind_its_write_is_followed_by_none_at_its_offsets(
    make_disk: Callable[..., Disk], way: str, action: Any
) -> None:
    """The next start would cut those off, acknowledged as they are, and a reader would have two records of one
    offset."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    put(log, b"b", pid=1, epoch=0, seq=0, txn=True)
    for point in refusing_points(way):
        append_refused(disk, log, way, point, action)
        assert log.log_end_offset == 2
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            put(log, b"c")
        assert disk.logs.reopen_offline()
        assert log.last_stable_offset == 1, "the transaction has no marker"
    assert put(log, b"c").base_offset == 2
    for end_life in (disk.stop, disk.crash):
        assert records(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
        end_life()
        log = disk.open()
    assert records(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("point", ["log.after_write", "log.after_append"])
def test_an_error_of_the_system_behind_a_write_is_told_as_one_of_the_storage(
    make_disk: Callable[..., Disk], caplog: pytest.LogCaptureFixture, point: str
) -> None:
    disk = make_disk()
    log = disk.open()
    disk.faults.arm(point, "oserror", "EIO", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.append_batch(batch(b"refused"), now_ms=NOW_MS)
    (line,) = [line for line in caplog.messages if "offline" in line]
    assert os.strerror(errno.EIO) in line


@pytest.mark.parametrize("end_life", ["stop", "crash"])
@pytest.mark.parametrize("action", ["error", "drop", "oserror", broken, no_memory_left])
@pytest.mark.parametrize("way", ["of a client", "of the broker", "a marker"])
def test_a_batch_that_a_fault_refused_is_gone_after_a_stop_before_the_reopening(
    make_disk: Callable[..., Disk], way: str, action: Any, end_life: str
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    put(log, b"b", pid=1, epoch=0, seq=0, txn=True)
    for point in refusing_points(way):
        append_refused(disk, log, way, point, action)
        getattr(disk, end_life)()
        log = disk.open()
        assert records(log) == [(0, b"a"), (1, b"b")]
        assert log.last_stable_offset == 1, "the transaction has no marker"


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
    guard = start_verification(log, 9, 0, 0, False)
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


def test_pause_of_a_partition_that_stays_offline_grows(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    disk.logs.run_periodically()
    with failing_loads(disk.clock) as tried_ms:
        log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
        disk.clock.advance(200_000)
    assert tried_ms == [1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000]
    disk.clock.advance(60_000)
    assert records(log) == [(0, b"a")]


def test_failed_store_of_the_aborted_index_takes_the_partition_offline(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0, txn=True)
    (disk.partition / f"{0:020d}.txnindex").mkdir()
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.append_marker(1, 0, 0, False, 1, NOW_MS)
    assert log.is_offline
    disk.stop()
    (disk.partition / f"{0:020d}.txnindex").rmdir()
    log = disk.open()
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0), "the marker is to come"
    log.append_marker(1, 0, 0, False, 1, NOW_MS)
    assert log.read(0, 100, isolation_level=1).aborted == [(1, 0)]


def test_aborted_data_is_not_shown_when_its_index_is_damaged(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    disk.logs.run_periodically()
    put(log, b"a", pid=1, seq=0, txn=True)
    (disk.partition / f"{0:020d}.txnindex").write_bytes(b"\xff" * 34)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.append_marker(1, 0, 0, False, 1, NOW_MS)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.read(0, 100, isolation_level=1)
    disk.clock.advance(1000)
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0), "the marker is to come"
    log.append_marker(1, 0, 0, False, 1, NOW_MS)
    assert log.read(0, 100, isolation_level=1).aborted == [(1, 0)]


def test_an_abort_that_finds_no_descriptor_for_its_index_is_refused_and_changes_nothing(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0, txn=True)
    with monkeypatch.context() as patch, refused(ErrorCode.KAFKA_STORAGE_ERROR):
        patch.setattr("kafka_shim.storage.txn_index.TxnIndex.append", no_descriptor_left)
        log.append_marker(1, 0, 0, False, 1, NOW_MS)
    assert (log.log_end_offset, log.last_stable_offset) == (1, 0)
    log.append_marker(1, 0, 0, False, 1, NOW_MS)
    assert log.read(0, 100, isolation_level=1).aborted == [(1, 0)]


@pytest.mark.parametrize("before", [0, 1])
def test_an_abort_whose_marker_cannot_be_written_leaves_no_entry_in_the_index(
    make_disk: Callable[..., Disk], before: int
) -> None:
    """Nor an empty file, which a start would take for one that lost its entries."""
    disk = make_disk()
    log = disk.open()
    for pid in range(before + 1):
        put(log, b"a", pid=pid, seq=0, txn=True)
    for pid in range(before):
        log.append_marker(pid, 0, 0, False, 1, NOW_MS)
    index = disk.partition / f"{0:020d}.txnindex"
    disk.faults.arm("log.before_write", "oserror", "ENOSPC", nth=1)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.append_marker(before, 0, 0, False, 1, NOW_MS)
    assert (index.stat().st_size if before else index.exists()) == before * 34
    assert len(log.active.txn_index) == before
    put(log, b"other")
    log.append_marker(before, 0, 0, False, 1, NOW_MS)
    aborted = log.read(0, 1000, isolation_level=1).aborted
    assert aborted == [(pid, pid) for pid in range(before + 1)]
    disk.stop()
    assert disk.open().read(0, 1000, isolation_level=1).aborted == aborted


def test_an_entry_of_an_aborted_transaction_whose_marker_a_crash_prevented_is_gone(
    make_disk: Callable[..., Disk],
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", pid=1, seq=0, txn=True)

    def crash(**_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("kafka_shim.storage.txn_index.TxnIndex.take_back", lambda _: None)
        disk.faults.arm("log.before_write", crash)
        log.append_marker(1, 0, 0, False, 1, NOW_MS)
    assert (disk.partition / f"{0:020d}.txnindex").stat().st_size == 34
    disk.crash()
    log = disk.open()
    assert (log.last_stable_offset, len(log.active.txn_index)) == (0, 0)
    disk.faults.disarm()
    put(log, b"b", pid=1, seq=1, txn=True)
    log.append_marker(1, 0, 0, False, 1, NOW_MS)
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


def test_a_partition_that_cannot_be_loaded_is_tried_with_growing_pauses(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.stop()
    with failing_loads(disk.clock) as tried_ms:
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

"""Indexes that a start finds cut, missing or without their entries are rebuilt from the log."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.cext.batch import Batch
from kafka_shim.errors import KafkaError
from kafka_shim.storage import names
from kafka_shim.storage.index import OFFSET_ENTRY, WRITE_CHUNK_BYTES
from kafka_shim.storage.local_log import LocalLog
from kafka_shim.storage.recovery import replay_batch
from kafka_shim.storage.segments import Segment
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, put, records
from kafka_shim.tests.storage.restarted import BASE, SEGMENT, fill, state_of


def closed_segment_with_an_abort(disk: Disk) -> None:
    """Three segments on the disk, and an aborted transaction in the second."""
    log = disk.open()
    put(log, os.urandom(600_000))
    put(log, os.urandom(600_000))
    put(log, b"aborted", pid=6, seq=0, txn=True)
    end(log, 6, 0, commit=False)
    put(log, os.urandom(600_000))
    put(log, b"last")
    assert [segment.base_offset for segment in log.segments] == [0, 1, 4]
    log.request_flush().result(timeout=60)
    disk.logs.services.flusher.sync_later([]).result(timeout=60)  # type: ignore[union-attr]
    assert log.recovery_point == 6
    disk.checkpoint()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [names.INDEX, names.TXN_INDEX])
def test_what_a_start_wrote_anew_below_the_recovery_point_is_on_the_disk_at_the_clean_stop(
    make_disk: Callable[..., Disk], clean: bool, suffix: str
) -> None:
    """A clean start takes the indexes as they are: what a power failure left of them would be believed."""
    disk = make_disk(SEGMENT)
    closed_segment_with_an_abort(disk)
    disk.stop() if clean else disk.crash()
    second = f"{1:020d}"
    if suffix == names.INDEX:
        (disk.partition / f"{second}{names.INDEX}").unlink()
    else:
        os.truncate(disk.partition / f"{second}{names.TXN_INDEX}", 0)
    log = disk.open()
    assert len(log.segments[1].txn_index) == 1
    assert log.recovery_point == 1
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    disk.stop()
    needed = {str(disk.partition / f"{second}{name}") for name in (names.INDEX, names.TIME_INDEX, names.TXN_INDEX)}
    assert needed <= set(synced)
    assert disk.open().recovery_point == 6


@pytest.mark.parametrize("suffix", [names.INDEX, names.TIME_INDEX])
def test_an_index_that_was_cut_inside_an_entry_is_made_anew_below_the_recovery_point_too(
    make_disk: Callable[..., Disk], suffix: str
) -> None:
    disk = make_disk({**SEGMENT, "index.interval.bytes": "1"})
    log = disk.open()
    for number in range(30):
        put(log, b"%d" % number)
    log.roll(NOW_MS)
    put(log, b"last")
    log.flush()
    disk.checkpoint()
    index = disk.partition / f"{BASE}{suffix}"
    before = index.read_bytes()
    disk.crash()
    os.truncate(index, len(before) - 1)
    disk.open()
    assert index.read_bytes() == before


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [b"", b"\0" * 34, b"\0" * 35, b"\1" * 34, b"\0\0" + b"\xff" * 32])
def test_a_transaction_index_that_lost_its_entries_is_made_anew_at_any_start(
    make_disk: Callable[..., Disk], clean: bool, content: bytes
) -> None:
    """Kafka looks at it after a clean stop too (LogSegment.sanityCheck). A consumer would read what was aborted."""
    disk = make_disk(SEGMENT)
    closed_segment_with_an_abort(disk)
    before = state_of(disk)
    seen = records(disk.logs.get("t", 0), isolation=1)  # type: ignore[union-attr]
    assert b"aborted" not in [value for _, value in seen]
    disk.stop() if clean else disk.crash()
    (disk.partition / f"{1:020d}{names.TXN_INDEX}").write_bytes(content)
    log = disk.open()
    assert records(log, isolation=1) == seen
    assert state_of(disk) == before


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()])
@pytest.mark.parametrize("suffix", [names.INDEX, names.TXN_INDEX])
def test_a_rebuild_of_indexes_that_was_not_finished_is_done_anew(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, suffix: str, error: BaseException
) -> None:
    """Below the recovery point nothing else says that an index lacks entries. A consumer would read what was
    aborted."""
    disk = make_disk({"segment.bytes": "1048576", "index.interval.bytes": "1"})
    log = disk.open()
    put(log, b"aborted", pid=6, seq=0, txn=True)
    end(log, 6, 0, commit=False)
    for number in range(WRITE_CHUNK_BYTES // OFFSET_ENTRY.size + 10):
        put(log, b"%d" % number)
    for sequence in (1, 2):
        put(log, b"aborted", pid=6, seq=sequence, txn=True)
        last_marker = end(log, 6, 0, commit=False)
    log.roll(NOW_MS)
    put(log, b"last")
    seen, before = records(log, isolation=1), state_of(disk)
    disk.stop()
    index = disk.partition / f"{BASE}{suffix}"
    index.unlink() if suffix == names.INDEX else os.truncate(index, 90)

    def interrupted(log: LocalLog, segment: Segment, batch: Batch, **options: Any) -> object:
        if batch.base_offset == last_marker:
            raise error
        return replay_batch(log, segment, batch, **options)

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.recovery.replay_batch", interrupted)
        with pytest.raises((KafkaError, KeyboardInterrupt)):
            disk.open()
    disk.stop() if isinstance(error, OSError) else disk.crash()
    assert records(disk.open(), isolation=1) == seen
    assert state_of(disk) == before


def test_a_transaction_index_is_whole_if_its_markers_ascend_within_the_segment(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for pid in range(3):
        put(log, b"aborted", pid=pid, seq=0, txn=True)
        end(log, pid, 0, commit=False)
    disk.stop()
    index = disk.partition / f"{BASE}{names.TXN_INDEX}"
    right = index.read_bytes()
    for content in (
        right[34:68] + right[:34],
        right[:34] * 3,
        right[:-1],
        right[:-34] + struct.pack(">hqqqq", 0, 2, 5, 5, 0),
    ):
        index.write_bytes(content)
        disk.open()
        disk.stop()
        assert index.read_bytes() == right


@pytest.mark.parametrize("entry", [(0, 7), (1 << 20, 3)])
def test_an_index_that_leads_into_a_batch_does_not_begin_the_offsets_anew(
    make_disk: Callable[..., Disk], entry: tuple[int, int]
) -> None:
    disk = make_disk()
    log = disk.open()
    for number in range(4):
        put(log, b"v%d" % number)
    disk.stop()
    (disk.partition / f"{BASE}.index").write_bytes(struct.pack(">ii", *entry))
    log = disk.open()
    assert log.log_end_offset == 4
    put(log, b"v4")
    assert records(log) == [(number, b"v%d" % number) for number in range(5)]


def test_missing_and_torn_indexes_are_rebuilt(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(SEGMENT)
    fill(disk)
    before = state_of(disk)
    disk.stop()
    for name in disk.files():
        if name.endswith(".index"):
            (disk.partition / name).unlink()
        if name.endswith(".timeindex"):
            (disk.partition / name).write_bytes(b"torn")
    disk.open()
    assert state_of(disk)[:5] == before[:5]
    log = disk.logs.get("t", 0)
    assert all(segment.offset_index.count for segment in log.segments if segment.size_bytes > 200_000)
    assert log.max_timestamp().timestamp_ms == NOW_MS


def test_preallocated_zeros_behind_index_entries_are_no_entries(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    for number in range(100):
        put(log, b"z" * 5000, timestamp=NOW_MS + number)
    entries = (log.active.offset_index.count, log.active.time_index.count)
    disk.stop()
    for suffix, preallocated in ((".index", 10485760), (".timeindex", 10485756)):
        os.truncate(disk.partition / (BASE + suffix), preallocated)
    log = disk.open()
    assert (log.active.offset_index.count, log.active.time_index.count) == entries
    assert len(records(log)) == 100
    assert log.offset_for_timestamp(NOW_MS + 77).offset == 77


def test_index_without_a_log_is_removed(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.stop()
    (disk.partition / f"{77:020d}.index").write_bytes(b"\0" * 8)
    disk.open()
    assert f"{77:020d}.index" not in disk.files()

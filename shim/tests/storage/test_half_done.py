"""Retention, DeleteRecords, compaction and flush.ms that end half-way for lack of room, memory or descriptors: what was
acknowledged stays, what is left is done later."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable

import pytest

from kafka_shim.storage.candidates import examine
from kafka_shim.storage.cleaner import _attempt
from kafka_shim.storage.flusher import Flusher
from kafka_shim.storage.reopening import FIRST_PAUSE_MS
from kafka_shim.tests.storage.compacted import COMPACT, clean, keyed, stored
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, put, records
from kafka_shim.tests.storage.test_retention import HOUR_MS, bases, fill

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
SEGMENT = {"segment.bytes": "1048576"}


class Nth:
    """Calls the function of the system, but for the n-th call, which raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, nth: int, error: BaseException) -> None:
        self._real: Callable[..., object] = getattr(os, name)
        self._left = nth
        self._error = error
        monkeypatch.setattr(os, name, self)

    @property
    def has_failed(self) -> bool:
        return self._left <= 0

    def __call__(self, *arguments: object, **options: object) -> object:
        self._left -= 1
        if self._left == 0:
            raise self._error
        return self._real(*arguments, **options)


def retain(disk: Disk, way: str) -> None:
    assert disk.logs is not None
    if way == "at once":
        disk.logs.retain(NOW_MS)
    else:
        deque(disk.logs.tasks._slices_of_retention(), 0)


@pytest.mark.parametrize("way", ["at once", "in slices"])
@pytest.mark.parametrize("life", ["same", "clean", "crash"])
@pytest.mark.parametrize("error", [FULL, MemoryError()], ids=["disk", "memory"])
@pytest.mark.parametrize("nth", range(1, 10))
def test_retention_that_ends_half_way_forgets_no_file(
    make_disk: Callable[..., Disk],
    monkeypatch: pytest.MonkeyPatch,
    nth: int,
    error: BaseException,
    life: str,
    way: str,
) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS)})
    log = disk.open()
    fill(log, 40, step_ms=1000)
    log.delete_records_before(30)
    with monkeypatch.context() as patch:
        failing = Nth(patch, "rename", nth, error)
        if isinstance(error, MemoryError):
            with pytest.raises(MemoryError):
                retain(disk, way)
        else:
            retain(disk, way)
        assert failing.has_failed
    assert len(log.segments) > 1
    if life != "same":
        disk.stop() if life == "clean" else disk.crash()
        log = disk.open()
    assert (log.log_start_offset, log.log_end_offset) == (30, 40)
    disk.logs.retain(NOW_MS)
    assert bases(log) == [30]
    assert [name for name in disk.files() if name.endswith(".log")] == [f"{30:020d}.log"]
    assert [offset for offset, _ in records(log)] == list(range(30, 40))


def test_deleterecords_that_found_no_memory_to_be_stored_is_not_done(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    log = disk.open()
    for _ in range(5):
        put(log, b"a")
    with monkeypatch.context() as patch:
        Nth(patch, "rename", 1, MemoryError())
        with pytest.raises(MemoryError):
            log.delete_records_before(3)
    assert log.log_start_offset == 0
    assert log.delete_records_before(3) == 3
    disk.crash()
    assert disk.open().log_start_offset == 3


@pytest.mark.parametrize("nth", range(1, 13))
def test_a_swap_that_finds_no_memory_shows_the_old_or_the_new_log(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    disk = make_disk({**COMPACT, "segment.bytes": "4000", "delete.retention.ms": "1000"})
    log = disk.open()
    for number in range(120):
        keyed(log, (b"k%d" % (number % 40), b"x" * 60))
    log.roll(NOW_MS)
    old = stored(log)
    disk.logs.run_periodically()
    cleaner = disk.logs.cleaner
    work = cleaner.begin(examine(log, None, NOW_MS))
    assert _attempt(work) is None
    with monkeypatch.context() as patch:
        failing = Nth(patch, "rename", nth, MemoryError())
        cleaner.finish(work, None)
        assert failing.has_failed
    assert disk.logs.is_offline("t", 0), "no round may merge over a half-done swap"
    disk.clock.advance(FIRST_PAUSE_MS)
    assert not disk.logs.is_offline("t", 0)
    assert set(stored(log)) <= set(old)
    assert not [name for name in disk.files() if name.endswith(".swap")]
    keyed(log, *((b"k%d" % number, None) for number in range(20)))
    log.roll(NOW_MS)
    for _ in range(3):
        clean(disk, log)
        disk.clock.advance(5000)
        keyed(log, (b"z", b"tail"))
        log.roll(disk.clock.now_ms())
    shown = stored(log)
    disk.stop()
    assert stored(disk.open()) == shown


def test_flush_ms_holds_although_no_descriptor_was_left_for_the_fsync(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk({"flush.ms": "2000"})
    log = disk.open()
    disk.logs.run_periodically()
    put(log, b"a")
    with monkeypatch.context() as patch:
        patch.setattr(Flusher, "_sync_file", lambda *_: OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
        disk.clock.advance(2000)
        disk.logs.services.flusher.stop()
    assert log.sync_failures > 0
    assert log.recovery_point == 0
    disk.clock.advance(4000)
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 1
    disk.clock.advance(1000)
    assert not disk.logs.tasks.scheduler.is_scheduled("flush")

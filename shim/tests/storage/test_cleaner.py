"""The cleaner: which partition is due, when it looks, and what its errors cost."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.clock import RealClock
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage.candidates import examine
from kafka_shim.storage.cleaner import WATCH_MS
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.throttle import Throttle
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.storage.compacted import COMPACT, DAY_MS, keyed, stored
from kafka_shim.tests.storage.conftest import NOW_MS, Disk


@pytest.mark.option("topic:min.cleanable.dirty.ratio")
def test_partition_is_due_above_the_dirty_ratio(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**COMPACT, "min.cleanable.dirty.ratio": "0.5"})
    log = disk.open()
    for number in range(20):
        keyed(log, (b"k%d" % number, b"z" * 1000))
    assert disk.logs.cleaner.choose(NOW_MS) is None  # all in the active segment
    log.roll(NOW_MS)
    candidate = disk.logs.cleaner.choose(NOW_MS)
    assert candidate is not None
    assert (candidate.first_dirty_offset, candidate.uncleanable_offset, candidate.ratio) == (0, 20, 1.0)
    disk.logs.cleaner.clean_now(log)
    for number in range(15):
        keyed(log, (b"k%d" % number, b"z" * 1000))
    log.roll(NOW_MS)
    assert disk.logs.cleaner.choose(NOW_MS) is None
    for number in range(6):
        keyed(log, (b"k%d" % number, b"z" * 1000))
    log.roll(NOW_MS)
    assert disk.logs.cleaner.choose(NOW_MS) is not None


@pytest.mark.option("topic:min.compaction.lag.ms")
def test_lags_hold_back_and_push(make_disk: Callable[..., Disk]) -> None:
    lags = {"min.compaction.lag.ms": "1000", "max.compaction.lag.ms": "5000", "min.cleanable.dirty.ratio": "0.99"}
    disk = make_disk({**COMPACT, **lags})
    log = disk.open()
    keyed(log, (b"a", b"1"), timestamp=NOW_MS)
    keyed(log, (b"a", b"2"), timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert examine(log, None, NOW_MS + 999).cleanable_bytes == 0
    assert examine(log, None, NOW_MS + 1000).cleanable_bytes > 0
    disk.logs.cleaner.clean_now(log)
    disk.clock.advance(2000)
    disk.logs.cleaner.clean_now(log)
    assert stored(log) == [(1, b"a", b"2")]
    keyed(log, (b"b", b"1"), timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert examine(log, 2, NOW_MS + 4000).is_due is False
    assert examine(log, 2, NOW_MS + 5001).is_due is True


def test_the_shortest_lag_holds_back_too(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({**COMPACT, "min.compaction.lag.ms": "1"}).open()
    keyed(log, (b"a", b"1"), timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert examine(log, None, NOW_MS).cleanable_bytes == 0
    assert examine(log, None, NOW_MS + 1).cleanable_bytes > 0


@pytest.mark.option("topic:max.compaction.lag.ms")
def test_max_lag_rolls_the_active_segment(make_disk: Callable[..., Disk]) -> None:
    log = make_disk({**COMPACT, "max.compaction.lag.ms": "1000"}).open()
    keyed(log, (b"a", b"1"), timestamp=NOW_MS)
    keyed(log, (b"a", b"2"), timestamp=NOW_MS + 1001)
    assert len(log.segments) == 2


def test_progress_outside_the_log_means_all_is_dirty(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    log.roll(NOW_MS)
    assert examine(log, 77, NOW_MS).first_dirty_offset == 0
    assert examine(log, None, NOW_MS).first_dirty_offset == 0


def test_one_partition_that_cannot_be_cleaned_costs_only_itself(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = make_disk(COMPACT)
    logs = [disk.open(), disk.logs.create("u", bytes(16), 0, disk.logs.get("t", 0).config)]
    cleaner = disk.logs.cleaner
    for log in logs:
        for number in range(20):
            keyed(log, (b"a", b"%d" % number))
        log.roll(NOW_MS)

    def broken(log: PartitionLog, *rest: object) -> Any:
        if log is logs[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return examine(log, *rest)  # type: ignore[arg-type]

    async def clean_both() -> None:
        cleaner.schedule()
        disk.clock.advance(15_000)
        async with asyncio.timeout(60):
            while len(stored(logs[1])) > 1:  # noqa: ASYNC110  (a swap wakes nobody)
                await asyncio.sleep(0.005)
            assert len(stored(logs[0])) == 20
            assert [record.levelname for record in caplog.records].count("WARNING") == 1
            monkeypatch.undo()
            while len(stored(logs[0])) > 1:
                await asyncio.sleep(0.005)
                disk.clock.advance(15_000)
        cleaner.stop()

    monkeypatch.setattr("kafka_shim.storage.cleaner.examine", broken)
    asyncio.run(clean_both())


def test_pause_of_a_partition_that_cannot_be_cleaned_grows(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    log.roll(NOW_MS)
    tried_ms: list[int] = []

    def broken(*_: object) -> Any:
        tried_ms.append(disk.clock.monotonic_ms())
        raise ValueError("a damaged index")

    monkeypatch.setattr("kafka_shim.storage.cleaner.examine", broken)
    disk.logs.cleaner.schedule()
    disk.clock.advance(DAY_MS)
    disk.logs.cleaner.stop()
    pauses = [later - earlier for earlier, later in pairwise(tried_ms)]
    assert pauses[:3] == [15_000, 30_000, 60_000]
    assert max(pauses) <= 3600_000 + 15_000


@pytest.mark.parametrize("in_round", [True, False])
def test_error_that_nobody_foresaw_is_logged_with_its_place(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, in_round: bool
) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    keyed(log, (b"a", b"1"))
    log.roll(NOW_MS)

    def broken(*_: object) -> Any:
        raise ValueError("a damaged index")

    monkeypatch.setattr(f"kafka_shim.storage.{'compaction.survey' if in_round else 'cleaner.examine'}", broken)
    if in_round:
        with pytest.raises(RuntimeError):
            disk.logs.cleaner.clean_now(log)
    else:
        disk.logs.cleaner.choose(NOW_MS)
    assert caplog.text.count("in broken") == 1
    assert "NoneType" not in caplog.text


def test_a_look_at_very_many_partitions_lets_other_work_in(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it chose is asked again at the end: it may move, or be gone, by then."""
    monkeypatch.setattr("kafka_shim.storage.cleaner.SLICE", 1)
    disk = make_disk(COMPACT)
    first = disk.open()
    logs = [first, *(disk.logs.create(name, bytes(16), 0, first.config) for name in "uvw")]
    for log in (logs[0], logs[3]):
        for number in range(20):
            keyed(log, (b"a", b"%d" % number))
        log.roll(NOW_MS)
    cleaner = disk.logs.cleaner
    steps = cleaner._choose_in_slices(NOW_MS)
    for _ in range(2):
        assert next(steps) is None
    cleaner.paused.add(logs[0])
    with pytest.raises(StopIteration) as end:
        for _ in range(3):
            next(steps)
    assert end.value.value is None
    candidate = cleaner.choose(NOW_MS)
    assert candidate is not None
    assert candidate.log is logs[3]


def test_to_examine_a_log_costs_each_segment_once(make_disk: Callable[..., Disk]) -> None:
    class Counted(list[Any]):
        looks = 0

        def __iter__(self) -> Any:
            self.looks += 1
            return super().__iter__()

        def __getitem__(self, where: Any) -> Any:
            self.looks += 1
            return super().__getitem__(where)

        def index(self, *what: Any) -> int:
            self.looks += 1
            return super().index(*what)

    asked = ("active", "config", "last_stable_offset", "log_end_offset", "log_start_offset")
    disk = make_disk(COMPACT)
    log = disk.open()
    looks = []
    for count in (5, 50):
        for number in range(count):
            keyed(log, (b"%d" % number, b""))
            log.roll(NOW_MS)
        segments = Counted(log.segments)
        seen: Any = SimpleNamespace(**{name: getattr(log, name) for name in asked}, segments=segments)
        assert examine(seen, None, NOW_MS).cleanable_bytes == sum(one.size_bytes for one in segments[:-1])
        looks.append(segments.looks)
    assert looks[0] == looks[1], "whole passes and slices, as many for ten times the segments"


def test_the_rest_between_two_looks_is_the_option_of_now(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(COMPACT, log_cleaner_backoff_ms=5000)
    disk.open()
    cleaner, clock = disk.logs.cleaner, disk.clock
    looks: list[float] = []

    def look() -> None:
        looks.append(clock.monotonic_ms())
        if len(looks) == 2:
            raise RuntimeError("unexpected")

    monkeypatch.setattr(cleaner, "_look", look)
    cleaner.schedule()
    clock.advance(5000)
    monkeypatch.setattr(disk.logs.services.config, "log_cleaner_backoff_ms", 1000)
    with pytest.raises(RuntimeError):
        clock.advance(5000)
    clock.advance(2000)
    assert [later - earlier for earlier, later in pairwise(looks)] == [5000, 1000, 1000]
    monkeypatch.setattr(disk.logs.services.config, "log_cleaner_backoff_ms", 0)
    clock.advance(1010)
    assert len(looks) > 10
    cleaner.stop()


@pytest.mark.parametrize("step", ["run", "swap", "thread"])
def test_cleaner_goes_on_after_an_unexpected_error(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    disk = make_disk(COMPACT)
    log = disk.open()
    for number in range(20):
        keyed(log, (b"a", b"%d" % number))
    log.roll(NOW_MS)
    failed: list[bool] = []

    def broken(*_: object) -> None:
        failed.append(True)
        raise RuntimeError("unexpected")

    points = {
        "run": "kafka_shim.storage.compaction.Round._build_map",
        "swap": "kafka_shim.storage.cleaner.swap",
        "thread": "threading.Thread.start",
    }
    monkeypatch.setattr(points[step], broken)

    async def go_on() -> None:
        disk.logs.cleaner.schedule()
        async with asyncio.timeout(60):
            while not failed:
                await asyncio.sleep(0.005)
                disk.clock.advance(15_000)
            monkeypatch.undo()
            while len(stored(log)) > 1:
                await asyncio.sleep(0.005)
                disk.clock.advance(15_000)
        disk.logs.cleaner.stop()

    asyncio.run(go_on())


def test_timer_cleans_in_a_thread(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk(COMPACT, log_cleaner_backoff_ms=1)
    log = disk.open()
    for number in range(20):
        keyed(log, (b"a", b"%d" % number))
    log.roll(NOW_MS)

    async def wait_for_it() -> None:
        disk.logs.services.clock = RealClock()
        disk.logs.cleaner.schedule()
        async with asyncio.timeout(60):
            while len(stored(log)) > 1:  # noqa: ASYNC110  (a swap wakes nobody)
                await asyncio.sleep(0.005)
        disk.logs.cleaner.stop()
        disk.logs.services.clock = disk.clock

    asyncio.run(wait_for_it())
    assert stored(log) == [(19, b"a", b"19")]
    # The thread ends by itself, a little after the swap that was waited for.
    for thread in threading.enumerate():
        if "cleaner" in thread.name:
            thread.join(60)
            assert not thread.is_alive()


def test_throttle_waits_by_its_rate_and_lets_go_at_a_stop(make_disk: Callable[..., Disk]) -> None:
    clock = RealClock()
    throttle = Throttle(10_000_000, clock)
    started_ms = clock.monotonic_ms()
    throttle.take(1_000_000)
    assert clock.monotonic_ms() - started_ms >= 90
    throttle.stop()
    throttle.take(1_000_000_000)
    assert clock.monotonic_ms() - started_ms < 60_000  # it would take 100 s


def test_the_cleaner_looks_again_although_memory_ended_when_its_next_look_was_set(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(COMPACT)
    disk.open()
    cleaner = disk.logs.cleaner
    looks: list[float] = []

    cleaner.schedule()
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "after", no_memory_left)
        with pytest.raises(MemoryError):
            disk.clock.advance(WATCH_MS / 2)
    monkeypatch.setattr(
        "kafka_shim.storage.cleaner.Cleaner._look", lambda self: looks.append(disk.clock.monotonic_ms())
    )
    disk.clock.advance(WATCH_MS)
    assert looks
    disk.stop()

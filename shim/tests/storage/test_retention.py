"""Which segments go, and when."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

import pytest

from kafka_shim.config import TopicConfig
from kafka_shim.storage.epochs import LeaderEpochs
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.names import LEADER_EPOCHS
from kafka_shim.storage.scheduled_tasks import SEGMENTS_OF_SLICE, ScheduledTasks
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, end, put, records

SEGMENT = {"segment.bytes": "1048576"}
HOUR_MS = 3600_000


def fill(log: PartitionLog, count: int = 30, *, step_ms: int = 0, start_ms: int = NOW_MS) -> None:
    """Segments of 10 batches each."""
    for number in range(count):
        put(log, b"z" * 100_000, timestamp=start_ms + number * step_ms, now_ms=start_ms + number * step_ms)


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


@pytest.mark.option("topic:retention.ms")
def test_old_segments_go_by_time(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS)})
    log = disk.open()
    fill(log, step_ms=1000)
    last_of_first = NOW_MS + 9 * 1000
    assert disk.logs.retain(last_of_first + HOUR_MS) == 0
    assert disk.logs.retain(last_of_first + HOUR_MS + 1) == 1
    assert bases(log) == [10, 20]
    assert log.log_start_offset == 10
    assert [offset for offset, _ in records(log)] == list(range(10, 30))


def test_the_active_segment_is_rolled_when_its_time_is_over(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS)})
    log = disk.open()
    fill(log)
    assert disk.logs.retain(NOW_MS + HOUR_MS + 1) == 3
    assert bases(log) == [30]
    assert (log.log_start_offset, log.log_end_offset) == (30, 30)
    assert disk.logs.retain(NOW_MS + 10 * HOUR_MS) == 0
    assert put(log, b"a").base_offset == 30
    disk.crash()
    assert records(disk.open()) == [(30, b"a")]


@pytest.mark.parametrize("by_timer", [False, True])
def test_a_full_disk_keeps_no_more_than_the_active_segment(make_disk: Callable[..., Disk], by_timer: bool) -> None:
    """It has no room for the next one. The partitions whose time is over as a whole would else keep it full."""
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS)})
    log = disk.open()
    fill(log)
    disk.faults.arm("log.before_roll", "oserror", "ENOSPC")
    if by_timer:
        disk.logs.run_periodically()
        disk.clock.advance(HOUR_MS + 600_000)
    else:
        assert disk.logs.retain(NOW_MS + HOUR_MS + 1) == 2
        assert disk.logs.retain(NOW_MS + HOUR_MS + 1) == 0
    assert bases(log) == [20]
    assert not log.is_offline
    assert [offset for offset, _ in records(log)] == list(range(20, 30))
    disk.faults.disarm()
    assert disk.logs.retain(NOW_MS + 2 * HOUR_MS) == 1


@pytest.mark.parametrize("point", ["log.before_roll", "log.after_roll"])
@pytest.mark.parametrize("action", ["error", "drop"])
@pytest.mark.parametrize("by_timer", [False, True])
def test_a_fault_at_a_roll_keeps_no_other_partition_from_its_retention(
    make_disk: Callable[..., Disk], by_timer: bool, action: str, point: str
) -> None:
    """Nor does it end the advance of a virtual clock."""
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS)})
    log = disk.open()
    logs = [log, disk.logs.create("u", TOPIC_ID, 0, log.config)]
    for log in logs:
        fill(log)
    disk.faults.arm(point, action, nth=1)
    if by_timer:
        disk.logs.run_periodically()
        disk.clock.advance(HOUR_MS + 600_000)
        wait_until(lambda: disk.clock.advance(600_000) or all(bases(log) == [30] for log in logs), "retention goes on")
    else:
        assert disk.logs.retain(NOW_MS + HOUR_MS + 1) == 3
        assert [bases(log)[0] for log in logs] in ([0, 30], [30, 0])
        assert disk.logs.retain(NOW_MS + HOUR_MS + 1) == 3


@pytest.mark.parametrize(("limit", "left"), [(0, []), (1, [(0, b"a")])])
def test_the_active_segment_goes_only_if_no_byte_may_stay(
    make_disk: Callable[..., Disk], limit: int, left: list[tuple[int, bytes]]
) -> None:
    disk = make_disk({"retention.bytes": str(limit)})
    log = disk.open()
    put(log, b"a")
    assert disk.logs.retain(NOW_MS) == (not left)
    assert records(log) == left
    assert put(log, b"b").base_offset == 1


@pytest.mark.option("topic:retention.bytes")
def test_old_segments_go_by_size(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.bytes": "1500000"})
    log = disk.open()
    fill(log)
    assert disk.logs.retain(NOW_MS) == 1
    assert bases(log) == [10, 20]
    assert log.size_bytes >= 1_500_000


@pytest.mark.parametrize("ending", ["stop", "crash"])
def test_deletion_of_segments_writes_no_file_until_the_end(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A full disk does not keep what would free it, and a slow one does not hold up the loop."""
    disk = make_disk({"segment.bytes": "1048576", "retention.bytes": "400000"})
    log = disk.open()
    while len(log.segments) < 4:
        put(log, b"z" * 300_000)

    def full(self: LeaderEpochs) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert disk.logs is not None
    with monkeypatch.context() as patch:
        patch.setattr(LeaderEpochs, "save", full)
        disk.logs.retain(disk.clock.now_ms())
    left = len(log.segments)
    assert left < 4
    disk.clock.advance(120_000)
    assert sum(name.endswith(".log") for name in disk.files()) == left
    start_offset = log.log_start_offset
    assert start_offset > 0
    (disk.stop if ending == "stop" else disk.crash)()
    text = (disk.path / "t-0" / LEADER_EPOCHS).read_text()
    assert text.splitlines()[-1] == (f"0 {start_offset}" if ending == "stop" else "0 0")
    again = disk.open()
    assert (again.log_start_offset, again.epochs.entries) == (start_offset, [(0, start_offset)])


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_minus_one_and_compact_keep_everything(make_disk: Callable[..., Disk], policy: str) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": policy})
    log = disk.open()
    for _ in range(30):
        put(log, b"z" * 100_000, key=b"k")
    assert disk.logs.retain(NOW_MS + 10_000 * HOUR_MS) == 0
    assert bases(log) == [0, 10, 20]


def test_deleted_records_release_their_segments(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": "-1"})
    log = disk.open()
    fill(log)
    log.delete_records_before(19)
    assert disk.logs.retain(NOW_MS) == 1
    assert bases(log) == [10, 20]
    log.delete_records_before(-1)
    assert disk.logs.retain(NOW_MS) == 1
    assert bases(log) == [20]


def test_records_without_time_count_from_the_files_change(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS)})
    log = disk.open()
    for _ in range(15):
        put(log, b"z" * 100_000, timestamp=-1)
    changed_ms = os.stat(disk.partition / f"{0:020d}.log").st_mtime_ns // 1_000_000
    assert disk.logs.retain(changed_ms + HOUR_MS - 1000) == 0
    assert disk.logs.retain(changed_ms + HOUR_MS + 60_000) == 2


def test_clock_that_goes_backwards_deletes_nothing_early(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS)})
    log = disk.open()
    fill(log)
    disk.clock.set_wall(NOW_MS - 48 * HOUR_MS)
    assert disk.logs.retain(disk.clock.now_ms()) == 0
    put(log, b"late", timestamp=disk.clock.now_ms(), now_ms=disk.clock.now_ms())
    assert disk.logs.retain(disk.clock.now_ms() + HOUR_MS + 1) == 0
    assert log.offset_for_timestamp(NOW_MS).offset == 0
    assert log.max_timestamp().offset == 0
    assert disk.logs.retain(NOW_MS + HOUR_MS + 1) == 3


@pytest.mark.option("topic:file.delete.delay.ms")
def test_files_are_renamed_first_and_removed_after_the_delay(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS), "file.delete.delay.ms": "1000"})
    log = disk.open()
    fill(log, step_ms=1000)
    view = log.read(3, 1).records[0]
    disk.logs.retain(NOW_MS + 9001 + HOUR_MS)
    assert f"{0:020d}.log.deleted" in disk.files()
    assert f"{0:020d}.log" not in disk.files()
    disk.clock.advance(1000)
    disk.logs.services.flusher.stop()
    assert not [name for name in disk.files() if name.endswith(".deleted")]
    assert len(bytes(view)) > 100_000


@pytest.mark.option("topic:flush.ms")
def test_timers_run_retention_flush_and_checkpoints(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({**SEGMENT, "retention.ms": str(HOUR_MS), "flush.ms": "5000"})
    log = disk.open()
    fill(log)
    disk.logs.run_periodically()
    disk.clock.advance(6000)
    disk.logs.services.flusher.stop()
    assert log.recovery_point == 30
    disk.clock.advance(60_000)
    disk.logs.services.flusher.stop()
    assert (disk.path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 30\n"
    disk.clock.advance(2 * HOUR_MS)
    assert bases(log) == [30]


def test_many_segments_go_a_slice_at_a_time(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"internal.segment.bytes": "200", "retention.ms": str(HOUR_MS)})
    log = disk.open()
    for _ in range(101):
        put(log, b"x" * 60)
    assert len(log.segments) == 101
    disk.clock.advance(2 * HOUR_MS)
    assert disk.logs is not None
    left = [len(log.segments) for _ in disk.logs.tasks._slices_of_retention()]
    # A turn in which the thread still renames changes nothing.
    assert list(dict.fromkeys(left)) == list(range(101 - SEGMENTS_OF_SLICE, 0, -SEGMENTS_OF_SLICE))
    assert bases(log) == [101]
    disk.crash()
    assert records(disk.open()) == []


def test_a_round_of_retention_ends_although_the_next_is_due(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many partitions a round takes longer than a short interval. It is not started again: its last partitions
    would never have their turn."""
    ended = []

    def slices(tasks: ScheduledTasks) -> Iterator[None]:
        for _ in range(5):
            yield
        ended.append(tasks)

    monkeypatch.setattr(ScheduledTasks, "_slices_of_retention", slices)
    disk = make_disk({}, log_retention_check_interval_ms=2, log_initial_task_delay_ms=2)
    disk.open()
    assert disk.logs is not None
    disk.logs.run_periodically()
    for _ in range(60):
        disk.clock.advance(1)
    assert len(ended) >= 5


def test_flushes_are_looked_at_only_while_something_waits_for_one(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"flush.ms": "5000"})
    log = disk.open()
    logs = disk.logs
    assert logs is not None
    logs.run_periodically()
    assert not logs.tasks.scheduler.is_scheduled("flush")
    put(log, b"a")
    assert logs.tasks.scheduler.is_scheduled("flush")
    disk.clock.advance(4000)
    assert log.unflushed_since_ms >= 0
    disk.clock.advance(2000)
    assert log.unflushed_since_ms == -1
    logs.services.flusher.stop()
    disk.clock.advance(1000)
    assert not logs.tasks.scheduler.is_scheduled("flush")
    put(log, b"b")
    assert logs.tasks.scheduler.is_scheduled("flush")


@pytest.mark.parametrize("ends", ["before", "after"])
@pytest.mark.parametrize("life", ["same", "clean", "crash"])
@pytest.mark.parametrize("by", ["retention", "DeleteRecords"])
def test_aborted_data_stays_hidden_when_its_beginning_is_gone(
    make_disk: Callable[..., Disk], by: str, life: str, ends: str
) -> None:
    """`ends`: the marker is written before the beginning goes, or after."""
    disk = make_disk()
    log = disk.open()
    put(log, b"aborted", pid=1, seq=0, txn=True)
    log.roll(NOW_MS)
    put(log, b"aborted", pid=1, seq=1, txn=True)
    put(log, b"open", pid=2, seq=0, txn=True)
    put(log, b"plain")
    log.roll(NOW_MS)
    if ends == "before":
        end(log, 1, 0, commit=False)
    if by == "retention":
        kept_bytes = log.size_bytes - log.segments[0].size_bytes
        log.configure(TopicConfig(disk.logs.config, {"retention.bytes": str(kept_bytes)}))
    else:
        log.delete_records_before(1)
    disk.logs.retain(NOW_MS)
    assert log.log_start_offset == log.segments[0].base_offset == 1
    if life != "same":
        disk.stop() if life == "clean" else disk.crash()
        log = disk.open()
    if ends == "after":
        assert log.last_stable_offset == 1
        end(log, 1, 0, commit=False)
    assert records(log, isolation=1) == []
    end(log, 2, 0, commit=True)
    assert records(log, isolation=1) == [(2, b"open"), (3, b"plain")]

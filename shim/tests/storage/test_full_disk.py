"""A full disk, a quota, a limit on the size of files: a write is refused whole, and the partition stays online."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.line_limit import MAX_LINES, PERIOD_MS
from kafka_shim.storage.checkpoint import LOG_START_OFFSETS, read_offsets
from kafka_shim.tests.storage.conftest import TOPIC_ID, Disk, batch, end, make_logs, put, records, refused, start


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


@pytest.fixture
def small_disk(full_disk: Path) -> Iterator[Disk]:
    disk = Disk(full_disk, {}, {})
    yield disk
    disk.stop()


def test_abort_on_a_full_disk_is_refused_and_reading_goes_on(small_disk: Disk) -> None:
    """The page of the log has room for the marker, and there is none for the first entry of the index."""
    disk = small_disk
    log = disk.open()
    put(log, b"committed", pid=1, seq=0, txn=True)
    end(log, 1, 0, commit=True)
    put(log, b"aborted", pid=1, seq=1, txn=True)
    fill = disk.path / "fill"
    with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        end(log, 1, 0, commit=False)
    assert records(log, isolation=1) == [(0, b"committed")]
    assert (log.log_end_offset, log.last_stable_offset) == (3, 2)
    fill.unlink()
    end(log, 1, 0, commit=False)
    for _ in range(2):
        assert records(log, isolation=1) == [(0, b"committed")]
        assert log.last_stable_offset == 4
        disk.stop()
        log = disk.open()


def test_starts_that_are_raised_together_are_taken_back_where_they_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, config = make_logs(tmp_path / "a", tmp_path / "b")
    start(logs, config)
    every = [logs.create(f"t{number}", TOPIC_ID, 0, config) for number in range(6)]
    for log in every:
        put(log, b"a", b"b")
        put(log, b"c")
    full_disk_once(monkeypatch, "kafka_shim.storage.checkpoint.write_offsets")
    with logs.checkpoints.raising_together() as failed:
        assert [log.delete_records_before(2) for log in every] == [2] * 6
    (full,) = {logs.dir_of(log) for log in failed}
    assert set(failed) == {log for log in every if logs.dir_of(log) is full}
    assert {err.code for err in failed.values()} == {ErrorCode.KAFKA_STORAGE_ERROR}
    starts = [0 if log in failed else 2 for log in every]
    assert sorted(starts) == [0] * 3 + [2] * 3
    assert [log.log_start_offset for log in every] == starts
    assert [log.earliest().offset for log in every] == starts
    stored = {
        name: offset for one in logs.dirs for name, offset in read_offsets(f"{one.path}/{LOG_START_OFFSETS}").items()
    }
    assert stored == {(log.topic, 0): 2 for log in every if log not in failed}
    with logs.checkpoints.raising_together() as failed:
        assert [log.delete_records_before(2) for log in every] == [2] * 6
    assert not failed
    logs.stop()


def test_a_start_that_was_raised_twice_is_taken_back_to_the_first(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request may name a partition twice."""
    disk = make_disk()
    log = disk.open()
    for _ in range(4):
        put(log, b"a")
    full_disk_once(monkeypatch, "kafka_shim.storage.checkpoint.write_offsets")
    with disk.logs.checkpoints.raising_together() as failed:
        assert [log.delete_records_before(offset) for offset in (1, 3)] == [1, 3]
    assert list(failed) == [log]
    assert [offset for offset, _ in records(log)] == [0, 1, 2, 3]


def test_starts_that_are_raised_together_are_taken_back_without_memory(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a", b"b")

    def fail(*_: object, **options: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.storage.checkpoint.write_offsets", fail)
        with pytest.raises(MemoryError), disk.logs.checkpoints.raising_together():
            log.delete_records_before(1)
    assert log.log_start_offset == 0
    assert log.delete_records_before(1) == 1
    disk.crash()
    assert disk.open().log_start_offset == 1

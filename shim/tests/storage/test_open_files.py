"""The budget of a broker's files: what is closed beyond it, and what a process that has none left can still do."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_shim.cext.segment import Mapping
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import ErrorCode
from kafka_shim.faults import Faults
from kafka_shim.storage.index import IndexFile
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.open_files import MOST_FILES, OPEN_MAX, OpenFiles, most_partition_files, raise_limit
from kafka_shim.storage.segments import Segment
from kafka_shim.tests import descriptors
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, put, records, refused

SEGMENTS = 60


def descriptors_in(directory: Path) -> list[str]:
    """The files below a directory that this process holds by descriptor."""
    found = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            target = os.readlink(entry.path)
        except FileNotFoundError:
            continue
        if target.startswith(f"{directory}/") and not target.endswith(".lock"):
            found.append(target)
    return found


def mappings_of(directory: Path) -> list[str]:
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if f"{directory}/" in line]


@pytest.fixture
def closed_segments(make_disk: Callable[..., Disk]) -> Disk:
    """t-0 with many closed segments, in a life that has used none of them."""
    disk = make_disk({"segment.bytes": "1048576", "index.interval.bytes": "1000"})
    log = disk.open()
    while len(log.segments) < SEGMENTS:
        put(log, b"z" * 300_000)
    disk.stop()
    return disk


def test_reading_every_segment_once_leaves_no_more_than_the_budget_open(closed_segments: Disk) -> None:
    log = closed_segments.open()
    files = closed_segments.logs.services.files
    files.limit = 16
    assert len(records(log)) == log.log_end_offset
    assert log.offset_for_timestamp(NOW_MS).offset == 0
    assert len(files) <= 16
    held = len(descriptors_in(closed_segments.path)) + len(mappings_of(closed_segments.path))
    assert 0 < held <= 16
    assert len(records(log)) == log.log_end_offset, "what was closed is opened again"


def test_index_that_is_searched_holds_no_descriptor(closed_segments: Disk) -> None:
    log = closed_segments.open()
    for segment in log.segments[:-1]:
        segment.offset_index.lookup(1)
        segment.time_index.lookup(NOW_MS)
    assert [name for name in descriptors_in(closed_segments.path) if "index" in name] == []
    assert len(mappings_of(closed_segments.path)) >= 1


def test_a_slow_reader_of_a_deleted_segment_leaves_the_bound_to_the_others(closed_segments: Disk) -> None:
    """Its file cannot be closed: it is gone from the directory. The others make room all the same."""
    log = closed_segments.open()
    files = closed_segments.logs.services.files
    files.limit = 4
    reader = log.read(0, 200_000, copy_bytes=0).records
    slow = log.segments[0]
    log.release_before(log.segments[1].base_offset, NOW_MS)
    assert log.segments[0] is not slow
    assert len(records(log)) == log.log_end_offset - log.log_start_offset
    assert len(files) <= files.limit
    assert len(descriptors_in(closed_segments.path)) <= files.limit
    (part,) = reader
    assert len(part.read(0, part.size_bytes)) == part.size_bytes
    before = len(files)
    del part, reader
    assert len(files) == before - 1, "it is closed when nobody reads it"


def test_retention_opens_nothing_for_good(closed_segments: Disk) -> None:
    closed_segments.open()
    closed_segments.logs.retain(NOW_MS)
    assert descriptors_in(closed_segments.path) == []
    assert mappings_of(closed_segments.path) == []


def test_everything_given_back_is_no_longer_counted(closed_segments: Disk) -> None:
    log = closed_segments.open()
    records(log)
    files = closed_segments.logs.services.files
    assert files.descriptors > 0
    closed_segments.logs.delete("t", 0)
    assert (len(files), files.descriptors) == (0, 0)
    assert mappings_of(closed_segments.path) == []


def test_process_without_descriptors_reads_on_with_those_that_others_give_up(closed_segments: Disk) -> None:
    log = closed_segments.open()
    for segment in log.segments[:10]:
        segment.fd  # noqa: B018
    with descriptors.none_left():
        assert len(records(log)) == log.log_end_offset


def test_half_of_what_is_held_is_given_up_for_one_more(tmp_path: Path) -> None:
    files, closed = OpenFiles(100), []

    class Held:
        def make_room(self) -> None:
            closed.append(self)
            files.closed(self)

    (tmp_path / "file").touch()
    held = [Held() for _ in range(6)]
    opened = [files.open(str(tmp_path / "file"), os.O_RDONLY, one) for one in held]
    with descriptors.none_left():
        with pytest.raises(OSError, match="Too many open files"):
            files.open_briefly(str(tmp_path / "file"), os.O_RDONLY)
        assert closed == held[:3]
    for fd in opened:
        os.close(fd)


def test_walk_goes_on_while_others_want_descriptors(closed_segments: Disk) -> None:
    log = closed_segments.open()
    closed_segments.logs.services.files.limit = 16
    for segment in log.segments[:16]:
        segment.fd  # noqa: B018
    walk = log.segments[0].walk()  # of the one that was opened first
    offsets = [next(walk).base_offset]
    with descriptors.none_left():
        log.segments[20].fd  # noqa: B018  (half of the others give theirs up)
    offsets += [batch.base_offset for batch in walk]
    assert offsets == list(range(log.segments[1].base_offset))


def test_append_opens_its_file_behind_everything_that_may_close_it(
    closed_segments: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = closed_segments.open()
    active = log.active
    active.bytes_since_index = 1 << 20
    read = IndexFile._read

    def read_and_make_room(index: IndexFile, position: int) -> tuple[int, ...]:
        active.close_file()
        return read(index, position)

    monkeypatch.setattr(IndexFile, "_read", read_and_make_room)
    offset = put(log, b"a").base_offset
    assert records(log, offset) == [(offset, b"a")]
    assert active.size_bytes == os.stat(active.path(".log")).st_size


@contextmanager
def closed_with_an_error(*segments: Segment) -> Iterator[None]:
    """The descriptors that these segments have now are closed with EIO, as a network's file system may do that could
    not write what was appended."""
    close, failing = os.close, {segment.fd for segment in segments}

    def close_and_fail(fd: int) -> None:
        close(fd)
        if fd in failing:
            failing.remove(fd)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "close", close_and_fail)
        yield
    assert not failing


def test_a_descriptor_that_is_closed_with_an_error_is_not_used_again(make_disk: Callable[..., Disk]) -> None:
    """Linux has closed it, and gives its number to the next file that is opened: what was appended went there."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    with closed_with_an_error(log.active), pytest.raises(OSError, match="Input/output"):
        log.active.close_file()
    other = disk.logs.create("u", bytes(16), 0, log.config)
    put(other, b"other")
    put(log, b"b")
    assert [records(one) for one in (log, other)] == [[(0, b"a"), (1, b"b")], [(0, b"other")]]
    assert len(disk.logs.services.files) == disk.logs.services.files.descriptors == 2


@pytest.fixture
def made_room(make_disk: Callable[..., Disk]) -> tuple[Disk, PartitionLog, PartitionLog]:
    """A partition whose file made room for that of another one, and was closed with an error."""
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    other = disk.logs.create("u", bytes(16), 0, log.config)
    disk.logs.services.files.limit = 1
    with closed_with_an_error(log.active):
        put(other, b"other")
    return disk, log, other


def test_a_close_that_fails_is_no_error_of_the_partition_that_needed_the_room(
    made_room: tuple[Disk, PartitionLog, PartitionLog],
) -> None:
    disk, log, other = made_room
    assert records(other) == [(0, b"other")]
    assert len(disk.logs.services.files) == disk.logs.services.files.descriptors == 1
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        put(log, b"refused")
    assert (log.is_offline, other.is_offline) == (True, False)
    assert disk.logs.reopen_offline()
    put(log, b"b")
    assert records(log) == [(0, b"a"), (1, b"b")]


def test_a_close_that_failed_before_the_stop_leaves_no_mark_of_a_clean_one(
    made_room: tuple[Disk, PartitionLog, PartitionLog],
) -> None:
    disk, _, _ = made_room
    disk.stop()
    assert not (disk.path / ".kafka_cleanshutdown").exists()


def test_a_partition_goes_offline_whatever_the_close_of_its_files_says(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"a")
    log.roll(NOW_MS)
    disk.logs.services.flusher.sync_later([]).result(timeout=60)  # the thread holds no file of the roll any more
    put(log, b"b")
    woken: list[bool] = []
    log.subscribe(lambda: woken.append(True))
    with closed_with_an_error(*log.segments):
        log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
    assert woken == [True], "readers that wait are told"
    assert descriptors_in(disk.path) == []
    assert disk.logs.reopen_offline()
    assert records(log) == [(0, b"a"), (1, b"b")]


def test_replay_that_pauses_holds_no_descriptor(closed_segments: Disk) -> None:
    log = closed_segments.open()
    offsets = []
    for _, batch in log.batches():
        offsets.append(batch.base_offset)
        for segment in log.segments:
            segment.close_file()
        assert descriptors_in(closed_segments.path) == []
    assert offsets == list(range(log.log_end_offset))


def test_share_of_partitions_grows_with_the_limit() -> None:
    assert [most_partition_files(limit) for limit in (64, 256, 1024, 20_000, 1 << 20)] == [
        16,
        112,
        496,
        9984,
        MOST_FILES,
    ]


def test_mapping_shows_the_file_and_keeps_no_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(range(100)))
    before = len(os.listdir("/proc/self/fd"))
    with open(path, "rb") as file:
        mapping = Mapping(file.fileno(), 0, 100)
    view = memoryview(mapping)[10:20]
    assert len(os.listdir("/proc/self/fd")) == before
    assert (len(mapping), bytes(view), view.readonly) == (100, bytes(range(10, 20)), True)
    del mapping
    assert bytes(view) == bytes(range(10, 20)), "the view keeps it"
    del view
    assert mappings_of(tmp_path) == []


@pytest.mark.parametrize(("position", "size_bytes"), [(0, 0), (0, -1), (-4096, 10)])
def test_mapping_of_nothing_is_refused(tmp_path: Path, position: int, size_bytes: int) -> None:
    (tmp_path / "f").write_bytes(b"x")
    with open(tmp_path / "f", "rb") as file, pytest.raises(ValueError, match="cannot map"):
        Mapping(file.fileno(), position, size_bytes)


def test_many_partitions_stay_within_the_budget(tmp_path: Path) -> None:
    config = BrokerConfig(log_dirs=(str(tmp_path),))
    logs = Logs(config, VirtualClock(NOW_MS), Faults())
    logs.services.files = OpenFiles(16)
    logs.open_dirs()
    logs.start(lambda topic, partition: (TOPIC_ID, TopicConfig(config), 0))
    every = [logs.create("t", TOPIC_ID, number, TopicConfig(config)) for number in range(200)]
    for _ in range(2):
        for log in every:
            put(log, b"a")
            assert log.read(0, 100).records
    assert len(descriptors_in(tmp_path)) <= 16
    logs.stop()


@pytest.mark.parametrize(
    ("soft", "hard", "most", "expected"),
    [
        (1024, 20_000, 20_000, 20_000),
        (20_000, 20_000, 20_000, 20_000),
        (256, resource.RLIM_INFINITY, OPEN_MAX, OPEN_MAX),  # macOS: the hard limit it reports is not the one it has
        (50_000, resource.RLIM_INFINITY, OPEN_MAX, 50_000),
        (256, 1024, 256, 256),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_lets_it(monkeypatch, soft, hard, most, expected):
    limits = [soft]

    def set_limit(_, pair):
        if pair[0] > most or pair[0] == resource.RLIM_INFINITY:
            raise ValueError("not allowed to raise maximum limit")
        limits.append(pair[0])

    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    assert raise_limit() == expected
    assert limits[-1] == expected

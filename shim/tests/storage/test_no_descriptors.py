"""A process that has no descriptor left: the request is refused, and its partition stays online."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.tests.descriptors import no_descriptor_left
from kafka_shim.tests.storage.conftest import Disk, put, records, refused


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

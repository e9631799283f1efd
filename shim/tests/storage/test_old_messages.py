"""Messages of the formats before record batches, which Apache Kafka leaves in a log."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, put, refused


def old_message(magic: int, offset: int, value: bytes) -> bytes:
    """A message of the format before Kafka 0.11: offset, size, CRC, magic, attributes, time (magic 1), key, value."""
    time = struct.pack(">q", NOW_MS) if magic else b""
    rest = struct.pack(">bb", magic, 0) + time + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(rest), zlib.crc32(rest)) + rest


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_an_old_format_are_left_as_they_are(
    make_disk: Callable[..., Disk], clean: bool, magic: int
) -> None:
    """A topic that nobody has written for years, in the directory of an Apache Kafka, which reads it."""
    disk = make_disk()
    put(disk.open(), b"a")
    (disk.stop if clean else disk.crash)()
    content = b"".join(old_message(magic, offset, b"v%d" % offset) for offset in range(5))
    path = disk.partition / f"{0:020d}.log"
    path.write_bytes(content)
    for _ in range(2):
        with refused(ErrorCode.KAFKA_STORAGE_ERROR):
            disk.open()
        assert path.read_bytes() == content
        disk.stop()


def test_garbage_that_looks_like_an_old_message_is_cut(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    put(disk.open(), b"a")
    disk.crash()
    path = disk.partition / f"{0:020d}.log"
    content = path.read_bytes()
    whole = old_message(1, 1, b"v")
    for garbage in (whole[:-1], whole[:-1] + b"w", whole[:17]):
        path.write_bytes(content + garbage)
        assert disk.open().log_end_offset == 1
        assert path.read_bytes() == content
        disk.crash()

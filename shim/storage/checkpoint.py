"""The text checkpoints of a data directory: a version line, a count line, then one line per entry (Kafka:
CheckpointFile)."""

from __future__ import annotations

import os

from kafka_shim.storage.durable import fsync
from kafka_shim.storage.regular_files import open_regular, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

VERSION = 0

Partition = tuple[str, int]


class CheckpointError(Exception):
    """A checkpoint file is malformed. The message says where and why."""


def replace_file(path: str, content: bytes | bytearray, *, sync: bool) -> None:
    """Replace a file: write `content` to a temporary file and rename it to `path`, so that a crash leaves either the
    old or the new file. Raises OSError."""
    temporary = path + ".tmp"
    fd = open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        if sync:
            fsync(fd)
    finally:
        os.close(fd)
    os.rename(temporary, path)


def write_lines(path: str, lines: Iterable[str], *, sync: bool) -> None:
    """Replace the checkpoint at `path` with these lines. Raises OSError."""
    entries = list(lines)
    replace_file(path, "".join(f"{line}\n" for line in [str(VERSION), str(len(entries)), *entries]).encode(), sync=sync)


def read_lines(path: str, fields: int) -> list[list[str]]:
    """Return the entries of a checkpoint, each split into `fields` words. A missing or empty file has no entries.

    Raises CheckpointError for another version, a malformed line or a wrong count."""
    try:
        lines = read_file(path).decode().splitlines()
    except FileNotFoundError:
        return []
    if len(lines) < 2:
        return []
    if lines[0] != str(VERSION):
        raise CheckpointError(f"{path}: version {lines[0]!r}, expected {VERSION}")
    entries = [line.split() for line in lines[2:]]
    if not lines[1].isdecimal() or int(lines[1]) != len(entries):
        raise CheckpointError(f"{path}: {lines[1]!r} entries announced, {len(entries)} found")
    for entry in entries:
        if len(entry) != fields:
            raise CheckpointError(f"{path}: malformed line {' '.join(entry)!r}")
    return entries


def write_offsets(path: str, offsets: Mapping[Partition, int], *, sync: bool) -> None:
    """Replace an offset checkpoint; each line is a topic, a partition and an offset. Raises OSError."""
    write_lines(path, (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()), sync=sync)


def read_offsets(path: str) -> dict[Partition, int]:
    """Return the offsets of a checkpoint by (topic, partition). Raises CheckpointError."""
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in read_lines(path, 3)}
    except ValueError as err:
        raise CheckpointError(f"{path}: {err}") from err

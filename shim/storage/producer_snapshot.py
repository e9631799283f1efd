"""Producer snapshot files: `.snapshot`, version 1 (Kafka: ProducerStateManager, ProducerSnapshot.json).

Layout: version int16, CRC-32C uint32 of all bytes after it, count int32, then entries of 46 bytes. The file contains
only the last batch of each producer (A9)."""

from __future__ import annotations

import os
from struct import Struct

from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.log_base import ProducerBase, encode_producers
from kafka_shim.storage.durable import fsync
from kafka_shim.storage.producers import ProducerEntry
from kafka_shim.storage.regular_files import open_regular, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HEADER = Struct(">hIi")
# id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, start of the open transaction
ENTRY = Struct(">qhiqiqiq")
CRC_FROM = 6
VERSION = 1
MAX_INT32 = 0x7FFFFFFF


class SnapshotError(Exception):
    """A snapshot is torn, corrupt or has another version."""


def encode(entries: Iterable[ProducerEntry]) -> bytearray:
    """Return the bytes of a snapshot."""
    producers: list[ProducerBase] = list(entries)
    encoded = encode_producers(producers, HEADER.size)
    HEADER.pack_into(encoded, 0, VERSION, 0, len(producers))
    HEADER.pack_into(encoded, 0, VERSION, crc32c(memoryview(encoded)[CRC_FROM:]), len(producers))
    return encoded


def decode(content: bytes) -> list[ProducerEntry]:
    """Return the producers in the bytes of a snapshot. Raises SnapshotError."""
    if len(content) < HEADER.size:
        raise SnapshotError(f"{len(content)} bytes are too few")
    version, crc, count = HEADER.unpack_from(content)
    if version != VERSION:
        raise SnapshotError(f"unknown version {version}")
    if crc != crc32c(memoryview(content)[CRC_FROM:]):
        raise SnapshotError("wrong checksum")
    if count < 0 or len(content) != HEADER.size + count * ENTRY.size:
        raise SnapshotError(f"{count} entries do not fit {len(content)} bytes")
    entries = []
    for fields in ENTRY.iter_unpack(content[HEADER.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, txn_first = fields
        entry = ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp_ms, txn_first)
        if last_offset >= 0:
            first_sequence = last_sequence - delta
            if first_sequence < 0:  # the sequence wrapped inside the batch
                first_sequence += MAX_INT32 + 1
            entry.batches = [(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp_ms)]
        entries.append(entry)
    return entries


def write(path: str, entries: Iterable[ProducerEntry], *, sync: bool) -> None:
    """Write a snapshot file. Raises OSError."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        view = memoryview(encode(entries))
        while view:
            view = view[os.write(fd, view) :]
        if sync:
            fsync(fd)
    finally:
        os.close(fd)


def read(path: str) -> list[ProducerEntry]:
    """Return the producers in a snapshot file. Raises OSError, SnapshotError."""
    return decode(read_file(path))

"""Logs for tests of compaction: what is appended by key, cleaned, and then stored."""

from __future__ import annotations

from typing import Any

from kafka_shim.cext.records import build, iterate
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.appends import append_as_client, start_verification
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, records

COMPACT = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
DAY_MS = 24 * 3600 * 1000


def keyed(log: PartitionLog, *pairs: tuple[bytes, bytes | None], codec: int = 0, **fields: Any) -> Any:
    """Append one batch of (key, value) records."""
    pid = fields.get("pid", -1)
    data = build(
        [(key, value, fields.get("timestamp", NOW_MS), ((b"h", b"x"),)) for key, value in pairs],
        codec=codec,
        producer_id=pid,
        producer_epoch=fields.get("epoch", 0) if pid >= 0 else -1,
        base_sequence=fields.get("seq", -1),
        transactional=fields.get("txn", False),
    )
    guard = start_verification(log, pid, fields["seq"], fields.get("epoch", 0), False) if fields.get("txn") else None
    return append_as_client(log, data, now_ms=NOW_MS, version=12, verification=guard)


def clean(disk: Disk, log: PartitionLog, *, roll: bool = True) -> None:
    if roll and log.active.size_bytes:
        log.roll(disk.clock.now_ms())
    disk.logs.cleaner.clean_now(log)


def stored(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Every data record in the files: (offset, key, value)."""
    return [
        (record.offset, record.key, record.value)
        for buffer, header in log.batches(0)
        if not header.is_control
        for record in iterate(buffer)
    ]


def headers(log: PartitionLog) -> list[Any]:
    return [header for _, header in log.batches(0)]


def latest(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """What a read_committed reader from the start ends up with."""
    keys = {offset: key for offset, key, _ in stored(log)}
    found: dict[bytes | None, bytes | None] = {}
    for offset, value in records(log, 0, isolation=1):
        found[keys[offset]] = value
    return {key: value for key, value in found.items() if value is not None}

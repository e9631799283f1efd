"""A log of several segments for tests of restarts, and what is to be back after one."""

from __future__ import annotations

import os

from kafka_shim.tests.storage.conftest import Disk, end, put, records

SEGMENT = {"segment.bytes": "1048576"}
BASE = "00000000000000000000"
EPOCHS = "leader-epoch-checkpoint"


def fill(disk: Disk) -> None:
    """Plain, idempotent and transactional batches over several segments, the last ones small."""
    log = disk.open()
    for number in range(20):
        put(log, os.urandom(100_000), pid=1, seq=number)
        put(log, b"t%d" % number, pid=2, seq=number, txn=True)
        if number % 3 == 0:
            end(log, 2, 0, commit=number % 2 == 0)
    for number in range(5):
        put(log, b"tail%d" % number, pid=3, seq=number)


def state_of(disk: Disk) -> tuple[object, ...]:
    log = disk.logs.get("t", 0)
    return (
        records(log),
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset,
        {
            entry.producer_id: (entry.epoch, entry.last_sequence, entry.txn_first_offset)
            for entry in log.producers.entries.values()
        },
        [segment.txn_index.entries() for segment in log.segments],
        log.epochs.entries,
        [segment.max_timestamp() for segment in log.segments],
    )

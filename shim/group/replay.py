"""Loads one partition of `__consumer_offsets` into `Groups`.

Only the newest record of a key counts, as after compaction. A record costs one dict entry, and a key is decoded only
once. Offsets of transactions count once their marker is found; those without a marker are pending.
"""

from __future__ import annotations

import logging

from kafka_shim.cext.records import parse_marker
from kafka_shim.group import records
from kafka_shim.group.groups import Groups
from kafka_shim.group.records import NO_PRODUCER_ID
from kafka_shim.storage.coordinator_logs import records_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from kafka_shim.storage.log import PartitionLog

    # key bytes -> (offset of the record, value bytes)
    Newest = dict[bytes, tuple[int, bytes]]

logger = logging.getLogger("kafka_shim.group")

# Records per step: a few milliseconds.
STEP_RECORDS = 2000
# So many bytes that are read, or decoded, count as one more: the record of a group with a thousand members takes as
# long as a thousand offsets.
BYTES_READ, BYTES_DECODED = 256, 64


def replay(log: PartitionLog) -> Generator[None, None, Groups]:
    """Load the groups of a partition's log. A generator that yields between steps, so that other work can run.

    Records that this version cannot read are skipped with a warning, and so is a corrupt batch: the older record of a
    key then counts, and all other groups are loaded.
    """
    newest, pending = yield from _newest(log)
    groups = Groups()
    since_stop = 0
    for producer_id, entries in ((NO_PRODUCER_ID, newest), *pending.items()):
        for key, (offset, value) in entries.items():
            _apply(groups, log, key, value, offset, producer_id)
            since_stop += 1 + len(value) // BYTES_DECODED
            if since_stop >= STEP_RECORDS:
                since_stop = 0
                yield
    return groups


def _newest(log: PartitionLog) -> Generator[None, None, tuple[Newest, dict[int, Newest]]]:
    newest: Newest = {}
    pending: dict[int, Newest] = {}
    since_stop = 0
    for buffer, batch in log.batches():
        since_stop += batch.record_count + batch.size_bytes // BYTES_READ
        if since_stop >= STEP_RECORDS:
            since_stop = 0
            yield
        if batch.is_control:
            for record in records_of(log, buffer, batch, logger):
                _end_transaction(newest, pending.pop(batch.producer_id, {}), record.key, record.value)
        elif batch.is_transactional:
            commits = pending.setdefault(batch.producer_id, {})
            for record in records_of(log, buffer, batch, logger):
                if record.key is not None and record.value is not None:
                    commits[record.key] = record.offset, record.value
        else:
            for record in records_of(log, buffer, batch, logger):
                key, value = record.key, record.value
                if key is None:
                    continue
                if value is not None:
                    newest[key] = record.offset, value
                    continue
                newest.pop(key, None)
                for commits in pending.values():
                    commits.pop(key, None)
    return newest, pending


def _end_transaction(newest: Newest, commits: Newest, key: bytes | None, value: bytes | None) -> None:
    try:
        commit, _ = parse_marker(key or b"", value or b"")
    except ValueError:
        return
    if commit:
        for each, (offset, committed) in commits.items():
            if each not in newest or offset > newest[each][0]:
                newest[each] = offset, committed


def _apply(groups: Groups, log: PartitionLog, key: bytes, value: bytes, offset: int, producer_id: int) -> None:
    try:
        if records.record_type_of(key) <= records.OFFSET_COMMIT:
            group_id, topic, partition = records.decode_offset_key(key)
            groups.commit(group_id, topic, partition, records.decode_offset(value, offset), producer_id)
        else:
            groups.apply(records.decode(key, value))
    except records.RecordError as error:
        logger.warning("skipping a record of %s-%d at %d: %s", log.topic, log.partition, offset, error)

"""The read path of `PartitionLog`: fetches, offset lookups, replay."""

from __future__ import annotations

import logging

from kafka_shim.cext.batch import BatchError, Verdict, scan
from kafka_shim.cext.records import find_timestamp
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage import names
from kafka_shim.storage.file_records import FileRecords
from kafka_shim.storage.results import Fetched, FoundOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kafka_shim.cext.batch import Batch
    from kafka_shim.cext.segment import Walk
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.segments import Segment

logger = logging.getLogger(__name__)

# How many bytes a replay reads before it yields the batches.
REPLAY_BYTES = 1 << 20


def read(
    log: PartitionLog, fetch_offset: int, max_bytes: int, isolation_level: int, at_least_one: bool, copy_bytes: int
) -> Fetched:
    """Implements `PartitionLog.read`. Raises KafkaError (OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE) and OSError."""
    end_offset = log.log_end_offset
    stable_offset = log.last_stable_offset
    if not log.log_start_offset <= fetch_offset <= end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {fetch_offset} for partition {log.name}, but we only have log segments from "
            f"offset {log.log_start_offset} to {end_offset}.",
        )
    fetched = Fetched([], 0, end_offset, stable_offset, log.log_start_offset, [] if isolation_level else None)
    if fetch_offset >= (stable_offset if isolation_level else end_offset):
        return fetched
    # (base offset of the segment, position) of the last stable offset; read_committed ends there.
    bound = log.lso_position() if isolation_level and stable_offset < end_offset else None
    found_at = log.segment_at(fetch_offset)
    number = found_at if found_at >= 0 else 0
    while number < len(log.segments):
        segment = log.segments[number]
        found = segment.find(fetch_offset) if segment.size_bytes else None
        if found is not None:
            _fill(log, fetched, number, found, max_bytes, bound, at_least_one, fetch_offset, copy_bytes)
            break
        # Compaction removed the rest of this segment, so the next batch is in a later one.
        _require_whole(log, segment, fetch_offset)
        number += 1
    return fetched


def _require_whole(log: PartitionLog, segment: Segment, fetch_offset: int) -> None:
    """Raises KafkaError CORRUPT_MESSAGE if an invalid batch header makes the rest of the segment unreadable, because
    skipping the rest would silently lose records. Apache Kafka detects fewer of these cases."""
    walk = segment.walk(segment.offset_index.lookup(max(fetch_offset - segment.base_offset, 0))[1])
    for _ in walk:
        pass
    _check_end(log, segment, walk)


def _check_end(log: PartitionLog, segment: Segment, walk: Walk) -> None:
    """Raise KafkaError CORRUPT_MESSAGE if a finished walk ended before the end of the segment."""
    if walk.verdict != Verdict.OK:
        raise _corrupt(log, segment, walk.position, walk.verdict.name)


def _corrupt(log: PartitionLog, segment: Segment, position: int, reason: str) -> KafkaError:
    message = f"{log.name}: {segment.path(names.LOG)} is corrupt at position {position}: {reason}"
    logger.error(message)
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def _fill(
    log: PartitionLog,
    fetched: Fetched,
    number: int,
    found: tuple[int, int, int, int],
    max_bytes: int,
    bound: tuple[int, int] | None,
    at_least_one: bool,
    fetch_offset: int,
    copy_bytes: int,
) -> None:
    segment = log.segments[number]
    position, first_bytes = found[0], found[1]
    end_position = segment.size_bytes
    if bound is not None and segment.base_offset >= bound[0]:
        end_position = bound[1] if segment.base_offset == bound[0] else 0
    if position >= end_position or (first_bytes > max_bytes and not at_least_one):
        fetched.withheld_bytes = max(end_position - position, 0)
        if fetched.aborted is not None:
            # Kafka looks for them after a read of no bytes too. It forgets them with a first batch that does not fit
            # (ReplicaManager.readFromLog, firstEntryIncomplete).
            is_cut_off = end_position and 0 < max_bytes < first_bytes and not at_least_one
            fetched.aborted = None if is_cut_off else _aborted(log, number, position, fetch_offset)
        return
    # As from Kafka the range may end inside a batch: readers expect a cut last batch, and drop it.
    size_bytes = min(max(max_bytes, first_bytes), end_position - position)
    if size_bytes <= copy_bytes:
        fetched.records.append(segment.read(position, size_bytes))
    else:
        fetched.records.append(FileRecords(segment, position, size_bytes))
    fetched.size_bytes = size_bytes
    if fetched.aborted is not None:
        fetched.aborted = _aborted(log, number, position + size_bytes, fetch_offset)


def _aborted(log: PartitionLog, number: int, end_position: int, fetch_offset: int) -> list[tuple[int, int]]:
    """Return the aborted transactions that overlap the offsets read. The upper bound is the first indexed batch at or
    after `end_position`."""
    segment = log.segments[number]
    entry = segment.offset_index.first_from_position(end_position)
    if entry is not None:
        end_offset = segment.base_offset + entry[0]
    elif number + 1 < len(log.segments):
        end_offset = log.segments[number + 1].base_offset
    else:
        end_offset = log.log_end_offset
    aborted: list[tuple[int, int]] = []
    for later in log.segments[number:]:
        found, complete = later.txn_index.collect(fetch_offset, end_offset)
        aborted += found
        if complete:
            break
    return aborted


def read_times(log: PartitionLog, timestamp_ms: int) -> Iterator[None]:
    """Implements `PartitionLog.read_times`. Raises KafkaError."""
    for segment in list(log.segments):
        if segment.is_abandoned:  # deleted between two steps, or the whole log is offline
            continue
        if segment.max_timestamp_ms is None:
            try:
                segment.max_timestamp()
            except OSError as err:
                raise log.fail(err) from err
            yield
        if 0 <= timestamp_ms <= segment.max_timestamp()[0]:
            return


def offset_for_timestamp(log: PartitionLog, timestamp_ms: int, isolation_level: int) -> FoundOffset:
    """Implements `PartitionLog.offset_for_timestamp`. Raises OSError."""
    for segment in log.segments:
        if segment.largest_timestamp_ms() >= timestamp_ms:
            found = _search_time(log, segment, timestamp_ms)
            if found is not None and found.offset < _bound(log, isolation_level):
                return found
            break
    return FoundOffset(-1, -1, -1)


def _search_time(log: PartitionLog, segment: Segment, timestamp_ms: int) -> FoundOffset | None:
    relative = max(segment.time_index.lookup(timestamp_ms)[1], log.log_start_offset - segment.base_offset, 0)
    position = segment.offset_index.lookup(relative)[1]
    walk = segment.walk(position)
    for batch in walk:
        if batch.max_timestamp >= timestamp_ms and batch.last_offset >= log.log_start_offset:
            found = _record_at(log, segment, batch, timestamp_ms, log.log_start_offset)
            if found is not None:
                return FoundOffset(found[1], found[0], batch.leader_epoch)
    _check_end(log, segment, walk)
    return None


def _record_at(
    log: PartitionLog, segment: Segment, batch: Batch, timestamp_ms: int, from_offset: int
) -> tuple[int, int] | None:
    view = segment.read(batch.position, batch.size_bytes)
    try:
        return find_timestamp(view, scan(view, check_crc=False), timestamp_ms, from_offset)
    except BatchError as err:
        raise _corrupt(log, segment, batch.position, str(err)) from None


def max_timestamp(log: PartitionLog, isolation_level: int) -> FoundOffset:
    """Implements `PartitionLog.max_timestamp`. Raises OSError."""
    segment = max(log.segments, key=_max_timestamp_ms)  # the first of equals, as Kafka
    timestamp_ms, offset = segment.max_timestamp()  # -1 also where no record has a time: then the first batch is found
    position = segment.offset_index.lookup(offset - segment.base_offset)[1]
    for batch in segment.walk(position):
        if batch.max_timestamp == timestamp_ms:
            found = _record_at(log, segment, batch, timestamp_ms, 0)
            if found is not None and found[0] < _bound(log, isolation_level):
                return FoundOffset(timestamp_ms, found[0], batch.leader_epoch)
            break
    return FoundOffset(-1, -1, -1)


def batches(log: PartitionLog, start_offset: int) -> Iterator[tuple[Any, Batch]]:
    """Yield every stored batch with its bytes, starting with the one that contains `start_offset`. About `REPLAY_BYTES`
    are read at a time. The next part is looked up by offset, because between two batches a segment may lose its
    descriptor, and compaction or retention may replace segments."""
    offset = start_offset
    seen: set[Segment] = set()
    while True:
        number = max(log.segment_at(offset), 0)
        while number < len(log.segments) and log.segments[number] in seen:
            number += 1
        if number == len(log.segments):
            return
        segment = log.segments[number]
        found = segment.find(offset) if segment.size_bytes else None
        if found is None:
            seen.add(segment)
            continue
        read: list[tuple[Any, Batch]] = []
        read_bytes = 0
        walk = segment.walk(found[0])
        for batch in walk:
            read.append((segment.read(batch.position, batch.size_bytes), batch))
            offset = batch.next_offset
            read_bytes += batch.size_bytes
            if read_bytes >= REPLAY_BYTES:
                break
        else:
            seen.add(segment)
        yield from read
        if segment in seen and walk.verdict != Verdict.OK:
            path = segment.path(names.LOG)
            logger.error("%s: %s is corrupt at position %d: %s", log.name, path, walk.position, walk.verdict.name)


def _bound(log: PartitionLog, isolation_level: int) -> int:
    return log.last_stable_offset if isolation_level else log.log_end_offset


def _max_timestamp_ms(segment: Segment) -> int:
    return segment.max_timestamp()[0]

"""Compaction of one partition: a round rewrites its closed segments in a separate thread (Kafka: Cleaner).

A `Round` is created on the event loop from a copy of the partition's state and shares nothing with the partition
afterwards. It reads the old files through its own descriptors and writes new files with the suffix `.cleaned`.
`cleaner` swaps them in.

A round keeps these records and batches (B18):

- the last record of each key, if its transaction was not aborted;
- a tombstone until its delete horizon, which is `delete.retention.ms` after the round that first saw it as the last
  record of its key; the horizon is stored as the base timestamp of the batch;
- a transaction marker until all batches of its transaction are gone, and then until its own delete horizon;
- the last batch of each active producer, without records if necessary;
- the last batch below the uncleanable offset, without records if necessary, so that the offsets continue."""

from __future__ import annotations

import logging
import os
import time
from concurrent.futures import wait

from kafka_shim.cext.batch import HEADER_SIZE, BatchError
from kafka_shim.cext.compaction import OffsetMap, copy_kept, index_records, seal, survey
from kafka_shim.cext.compression import compress, decompress
from kafka_shim.cext.segment import Walk, read
from kafka_shim.config import MAX_INT64
from kafka_shim.storage import names, validation
from kafka_shim.storage.cleaned_transactions import Transactions
from kafka_shim.storage.durable import fsync
from kafka_shim.storage.open_files import OpenFiles
from kafka_shim.storage.producers import NO_OFFSET
from kafka_shim.storage.segments import Segment, max_timestamp_of
from kafka_shim.storage.txn_index import TxnIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from kafka_shim.cext.batch import Batch
    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.throttle import Throttle
    from kafka_shim.storage.txn_index import Aborted

logger = logging.getLogger(__name__)

HORIZON_BIT = 0x40
CODEC_BITS = 0x07
LIMIT_BYTES = 1 << 30
# The thread releases the GIL for the event loop after this many batches.
YIELD_EVERY = 8
# How often a round that waits for an fsync looks whether it is cancelled.
LOOK_S = 0.05


class Cancelled(Exception):
    """The round is cancelled because the partition was closed or went offline, or because the broker stops."""


class Source:
    """A copy of one closed segment's facts at the start of the round. `cleaner` compares `segment` to detect a segment
    that was replaced or deleted in the meantime."""

    __slots__ = ("base_offset", "modified_ns", "path", "segment", "size_bytes")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.base_offset = segment.base_offset
        self.path = segment.path(names.LOG)
        self.size_bytes = segment.size_bytes
        try:
            self.modified_ns = os.stat(self.path).st_mtime_ns
        except FileNotFoundError:
            self.modified_ns = 0


class Group:
    """Adjacent segments that one new segment replaces. `written_bytes` is the size of the new segment."""

    __slots__ = ("sources", "written_bytes")

    def __init__(self, sources: list[Source]) -> None:
        self.sources = sources
        self.written_bytes = 0

    @property
    def base_offset(self) -> int:
        return self.sources[0].base_offset


class Round:
    """One compaction of one partition. Created on the event loop; `run` runs in a thread. It begins when what it cleans
    is on the disk, once `flushed` is done. `groups` and `end_offset` are the result."""

    def __init__(
        self,
        log: PartitionLog,
        first_dirty_offset: int,
        uncleanable_offset: int,
        *,
        flushed: Future[None] | None,
        now_ms: int,
        map_bytes: int,
        load_factor: float,
        throttle: Throttle,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self.log = log
        self.first_dirty_offset = first_dirty_offset
        self.uncleanable_offset = uncleanable_offset
        self.now_ms = now_ms
        self._flushed = flushed
        self._throttle = throttle
        self._is_cancelled = is_cancelled
        # a copy of the state that the thread needs
        self._directory = log.directory
        self._config: TopicConfig = log.config
        # None beyond the greatest timestamp: then nothing gets a horizon, as in Kafka, where the sum wraps around.
        horizon_ms = now_ms + log.config.delete_retention_ms
        self._horizon_ms = horizon_ms if horizon_ms <= MAX_INT64 else None
        self._sources = [Source(segment) for segment in log.segments if segment.base_offset < uncleanable_offset]
        # Those of later segments too: the markers of transactions that began below may be there. Read by the thread:
        # they may be many thousand files.
        self._txn_indexes = [segment.path(names.TXN_INDEX) for segment in log.segments]
        self._aborted: list[Aborted] = []
        self._last_of_producer = {
            entry.producer_id: (entry.batches[-1][3] if entry.batches else NO_OFFSET, entry.epoch)
            for entry in log.producers.entries.values()
        }
        self._map = OffsetMap(map_bytes, load_factor, os.urandom(16))
        self._since_yield = 0
        # the result
        self.end_offset = first_dirty_offset
        self.groups: list[Group] = []
        self.read_bytes = 0

    def run(self) -> None:
        """Write the new segments. Raises Cancelled, OSError, or BatchError if the log is corrupt. `.cleaned` files may
        then remain; `discard` and the next start remove them."""
        if self._flushed is not None:
            # The first segments are swapped in alone: a power cut must not take the records for which theirs went.
            self._wait_for(self._flushed)
        self._aborted = sorted(self._read_aborted(), key=_first_offset)
        self._build_map()
        self.end_offset = max(self._map.latest_offset + 1, self.first_dirty_offset)
        transactions = Transactions(self._aborted)
        for group in self._grouped():
            self._clean(group, transactions)
            self.groups.append(group)

    def _wait_for(self, flushed: Future[None]) -> None:
        """Return when it is done. Raises its error, or Cancelled: a stop need not wait for thousands of files."""
        while not flushed.done():
            if self._is_cancelled():
                raise Cancelled
            wait((flushed,), LOOK_S)
        flushed.result()

    def _read_aborted(self) -> Iterator[Aborted]:
        # What retention takes meanwhile is of transactions that begin in segments that it has taken too.
        for path in self._txn_indexes:
            self._pause(0)
            yield from TxnIndex(path).entries()

    def discard(self) -> None:
        """Remove the new segments that were not swapped in."""
        for source in self._sources:
            self._cleaned_segment(source.base_offset).remove()

    # --- first pass: the last offset of each key

    def _build_map(self) -> None:
        dirty = [
            (source, self._end_of(number))
            for number, source in enumerate(self._sources)
            if self._end_of(number) > self.first_dirty_offset
        ]
        # Leave out aborted transactions whose marker is below the first segment read here: they would never end.
        first = dirty[0][0].base_offset if dirty else 0
        transactions = Transactions([entry for entry in self._aborted if entry[2] >= first])
        for source, end_offset in dirty:
            if not self._index_segment(source, transactions):
                return
            # The last offset in a segment may be lower than the next base offset minus one.
            self._map.latest_offset = end_offset - 1

    def _end_of(self, number: int) -> int:
        later = number + 1
        return self._sources[later].base_offset if later < len(self._sources) else self.uncleanable_offset

    def _index_segment(self, source: Source, transactions: Transactions) -> bool:
        """Add the keys of a segment to the map. Returns False if the map was full before the end of the segment."""
        for batch, content in self._batches(source):
            if batch.base_offset >= self.uncleanable_offset:
                break
            if batch.is_control:
                transactions.on_marker(batch, content)
            elif (
                not transactions.on_data(batch)
                and batch.last_offset >= self.first_dirty_offset
                and not index_records(self._map, records_of(batch, content), batch, self.first_dirty_offset)
            ):
                return False
            if batch.last_offset >= self.first_dirty_offset:
                self._map.latest_offset = batch.last_offset
        return True

    # --- second pass: write the records that are kept

    def _grouped(self) -> list[Group]:
        """Group adjacent segments whose total size fits into one segment and one index."""
        config = self._config
        groups: list[Group] = []
        size_bytes = index_bytes = 0
        for number, source in enumerate(self._sources):
            if source.base_offset >= self.end_offset:
                break
            # At most one index entry per `index.interval.bytes`; the larger entry has 12 bytes.
            index_size = source.size_bytes // max(config.index_interval_bytes, 1) * 12
            fits = (
                groups
                and size_bytes + source.size_bytes <= config.segment_bytes
                and index_bytes + index_size <= config.segment_index_bytes
                and (source.size_bytes == 0 or self._end_of(number) - 1 - groups[-1].base_offset <= 0x7FFFFFFF)
            )
            if fits:
                groups[-1].sources.append(source)
                size_bytes += source.size_bytes
                index_bytes += index_size
            else:
                groups.append(Group([source]))
                size_bytes, index_bytes = source.size_bytes, index_size
        return groups

    def _clean(self, group: Group, transactions: Transactions) -> None:
        segment = self._cleaned_segment(group.base_offset)
        segment.remove()
        transactions.target = segment
        interval_bytes = self._config.index_interval_bytes
        try:
            for source in group.sources:
                for batch, content in self._batches(source):
                    kept = self._filter(batch, content, transactions)
                    if kept is not None:
                        segment.append((kept,), len(kept), batch.last_offset, max_timestamp_of(kept), interval_bytes)
            segment.fd  # noqa: B018  (creates the file, even if empty)
            segment.offset_index.store()
            segment.store_indexes()
            group.written_bytes = segment.size_bytes
            segment.close_file()  # raises where `abandon` does not: the sources are deleted after this
        finally:
            segment.abandon()
        modified_ns = group.sources[-1].modified_ns
        for path in segment.sync_paths():
            _sync(path, modified_ns)

    def _cleaned_segment(self, base_offset: int) -> Segment:
        return Segment(self._directory, base_offset, OpenFiles(), self.now_ms, names.CLEANED)

    def _filter(self, batch: Batch, content: bytes, transactions: Transactions) -> bytes | bytearray | None:
        """Return the bytes to store for a batch, or None if the batch is removed."""
        if batch.is_control:
            may_go = transactions.on_marker(batch, content)
            discard = may_go and batch.has_delete_horizon and batch.base_timestamp <= self.now_ms
        else:
            may_go = discard = transactions.on_data(batch)
        retain_empty = self._is_last_of_producer(batch) or batch.next_offset == self.uncleanable_offset
        if discard:
            return empty_batch(batch) if retain_empty else None
        if batch.is_control:
            if batch.record_count == 0:
                return empty_batch(batch) if retain_empty else None
            if may_go and not batch.has_delete_horizon and self._horizon_ms is not None:
                return self._rewrite(batch, content, None, batch.record_count, batch.max_timestamp, self._horizon_ms)
            return content
        keep_tombstones = not batch.has_delete_horizon or self.now_ms < batch.base_timestamp
        found = survey(self._map, records_of(batch, content), batch, keep_tombstones)
        if found.kept_count == 0:
            return empty_batch(batch) if retain_empty else None
        horizon_ms = self._horizon_ms if found.has_tombstones and not batch.has_delete_horizon else None
        if found.kept_count == found.read_count and horizon_ms is None:
            return content
        max_timestamp = batch.max_timestamp if batch.is_log_append_time else found.max_timestamp
        return self._rewrite(batch, content, keep_tombstones, found.kept_count, max_timestamp, horizon_ms)

    def _rewrite(
        self,
        batch: Batch,
        content: bytes,
        keep_tombstones: bool | None,
        count: int,
        max_timestamp: int,
        horizon_ms: int | None,
    ) -> bytearray:
        """Return a batch of the kept records (all if `keep_tombstones` is None), compressed with the batch's own codec.
        A new delete horizon is stored in place of the base timestamp."""
        attributes = batch.attributes
        base_timestamp = batch.base_timestamp
        if horizon_ms is not None:
            attributes |= HORIZON_BIT
            base_timestamp = horizon_ms
        offsets = None if keep_tombstones is None else self._map
        kept = copy_kept(offsets, records_of(batch, content), batch, bool(keep_tombstones), base_timestamp)
        codec = batch.compression
        stored = compress(codec, kept, validation.level_of(codec, self._config)) if codec else kept
        return seal(stored, batch, attributes, base_timestamp, max_timestamp, count)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        last = self._last_of_producer.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            return False
        offset, epoch = last
        return (
            batch.last_offset == offset if offset != NO_OFFSET else batch.is_control and batch.producer_epoch == epoch
        )

    # --- reading

    def _batches(self, source: Source) -> Iterator[tuple[Batch, bytes]]:
        fd = os.open(source.path, os.O_RDONLY)
        try:
            # CRCs are verified, because a rewritten batch would hide a corruption on the disk behind a valid CRC.
            walk = Walk(fd, 0, source.size_bytes, True, source.base_offset)
            for batch in walk:
                self._pause(batch.size_bytes)
                yield batch, read(fd, batch.position, batch.size_bytes)
            if walk.position != source.size_bytes:
                raise BatchError(walk.verdict, walk.position)
        finally:
            os.close(fd)

    def _pause(self, size_bytes: int) -> None:
        if self._is_cancelled():
            raise Cancelled
        self.read_bytes += size_bytes
        self._throttle.take(size_bytes)
        self._since_yield += 1
        if self._since_yield >= YIELD_EVERY:
            # Without it the event loop's thread waits for the interpreter's switch interval of 5 ms each time.
            self._since_yield = 0
            time.sleep(0)


def records_of(batch: Batch, content: bytes) -> memoryview | bytes | bytearray:
    """Return the records section of a batch, decompressed."""
    section = memoryview(content)[HEADER_SIZE:]
    return decompress(batch.compression, section, LIMIT_BYTES) if batch.compression else section  # type: ignore[return-value]


def empty_batch(batch: Batch) -> bytearray:
    """Return the batch without its records. The header keeps producer id, epoch, sequence and last offset."""
    return seal(b"", batch, batch.attributes & ~(CODEC_BITS | HORIZON_BIT), -1, batch.max_timestamp, 0)


def _first_offset(entry: Aborted) -> int:
    return entry[1]


def _sync(path: str, modified_ns: int) -> None:
    """fsync a new file and give it the modification time of the file it replaces, because retention may use it."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        if modified_ns:
            os.utime(fd, ns=(modified_ns, modified_ns))
        fsync(fd)
    finally:
        os.close(fd)

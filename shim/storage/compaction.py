"""Rewriting the closed segments of a compacted partition: the work of one round, in a thread of its own (Kafka:
Cleaner).

A `Round` is made on the event loop from a partition's state at that moment and shares nothing with it afterwards: it
reads the old files through its own descriptors and writes new ones with the suffix `.cleaned`. `cleaner` swaps them in.

What stays (B18): the last record of each key; a tombstone until its delete horizon (`delete.retention.ms` after the
round that first saw it as the last, kept as the batch's base timestamp); nothing aborted; a transaction's marker until
all its batches are gone and then until its own horizon; of each active producer its last batch, empty if need be; the
last batch of the round, so that offsets go on."""

from __future__ import annotations

import logging
import os
import time

from kafka_shim.cext.batch import HEADER_SIZE, BatchError
from kafka_shim.cext.compaction import OffsetMap, copy_kept, index_records, seal, survey
from kafka_shim.cext.compression import compress, decompress
from kafka_shim.cext.records import iterate
from kafka_shim.cext.segment import Walk, read
from kafka_shim.protocol.record_frames import ControlType
from kafka_shim.storage import names, validation
from kafka_shim.storage.open_files import OpenFiles
from kafka_shim.storage.producers import NO_OFFSET
from kafka_shim.storage.segments import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.cext.batch import Batch
    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.throttle import Throttle

logger = logging.getLogger(__name__)

HORIZON_BIT = 0x40
CODEC_BITS = 0x07
LIMIT_BYTES = 1 << 30
# Batches between two offers of the interpreter to the event loop's thread.
YIELD_EVERY = 8


class Cancelled(Exception):
    """The partition went away, or the broker stops."""


class Source:
    """One closed segment as it was when the round began; `segment` tells `cleaner` whether it is still there."""

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
    """Segments that one new segment replaces; `cleaned` says its size once it is written."""

    __slots__ = ("sources", "written_bytes")

    def __init__(self, sources: list[Source]) -> None:
        self.sources = sources
        self.written_bytes = 0

    @property
    def base_offset(self) -> int:
        return self.sources[0].base_offset


# (producer id, first offset, offset of the marker, last stable offset)
Aborted = tuple[int, int, int, int]


class Round:
    """One compaction of one partition. Made on the event loop; `run` in a thread; `groups` and `end_offset` are its
    outcome."""

    def __init__(
        self,
        log: PartitionLog,
        first_dirty_offset: int,
        uncleanable_offset: int,
        *,
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
        self._throttle = throttle
        self._is_cancelled = is_cancelled
        # a copy of what the thread needs
        self._directory = log.directory
        self._config: TopicConfig = log.config
        self._sources = [Source(segment) for segment in log.segments if segment.base_offset < uncleanable_offset]
        self._aborted: list[Aborted] = sorted(
            (entry for segment in log.segments for entry in segment.txn_index.entries()), key=_first_offset
        )
        self._last_of_producer = {
            entry.producer_id: (entry.batches[-1][3] if entry.batches else NO_OFFSET, entry.epoch)
            for entry in log.producers.entries.values()
        }
        self._map = OffsetMap(map_bytes, load_factor, os.urandom(16))
        self._since_yield = 0
        # the outcome
        self.end_offset = first_dirty_offset
        self.groups: list[Group] = []
        self.read_bytes = 0

    def run(self) -> None:
        """Write the new segments. Raises Cancelled, OSError, BatchError (the log is corrupt); then `.cleaned` files may
        lie about, which `discard` and the next start remove."""
        self._build_map()
        self.end_offset = max(self._map.latest_offset + 1, self.first_dirty_offset)
        transactions = Transactions(self._aborted)
        for group in self._grouped():
            self._clean(group, transactions)
            self.groups.append(group)

    def discard(self) -> None:
        """Remove what was written and not swapped in."""
        for source in self._sources:
            self._cleaned_segment(source.base_offset).remove()

    # --- first pass: the last offset of each key

    def _build_map(self) -> None:
        dirty = [
            (source, self._end_of(number))
            for number, source in enumerate(self._sources)
            if self._end_of(number) > self.first_dirty_offset
        ]
        # Where the marker is not among what is read here, the transaction must not be either: it would never end.
        first = dirty[0][0].base_offset if dirty else 0
        transactions = Transactions([entry for entry in self._aborted if entry[2] >= first])
        for source, end_offset in dirty:
            if not self._index_segment(source, transactions):
                return
            # Offsets may end before the next segment begins.
            self._map.latest_offset = end_offset - 1

    def _end_of(self, number: int) -> int:
        later = number + 1
        return self._sources[later].base_offset if later < len(self._sources) else self.uncleanable_offset

    def _index_segment(self, source: Source, transactions: Transactions) -> bool:
        """False when the map was full before the segment's end."""
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

    # --- second pass: what stays

    def _grouped(self) -> list[Group]:
        """Neighbours whose sum fits one segment and one index share one new segment."""
        config = self._config
        groups: list[Group] = []
        size_bytes = index_bytes = 0
        for number, source in enumerate(self._sources):
            if source.base_offset >= self.end_offset:
                break
            # An index entry for each `index.interval.bytes` at most, 12 bytes the larger one.
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
        try:
            for source in group.sources:
                for batch, content in self._batches(source):
                    kept = self._filter(batch, content, transactions)
                    if kept is not None:
                        segment.append((kept,), len(kept), batch.last_offset, *self._times(kept))
            segment.fd  # noqa: B018  (the file must exist, be it empty)
            segment.offset_index.store()
            segment.store_indexes()
            group.written_bytes = segment.size_bytes
        finally:
            segment.abandon()
        modified_ns = group.sources[-1].modified_ns
        for path in segment.sync_paths():
            _sync(path, modified_ns)

    def _times(self, kept: bytes | bytearray | memoryview) -> tuple[int, int]:
        """Maximum timestamp and index interval, the last arguments of `Segment.append`."""
        return int.from_bytes(kept[35:43], "big", signed=True), self._config.index_interval_bytes

    def _cleaned_segment(self, base_offset: int) -> Segment:
        return Segment(self._directory, base_offset, OpenFiles(), self.now_ms, names.CLEANED)

    def _filter(self, batch: Batch, content: bytes, transactions: Transactions) -> bytes | bytearray | None:
        """The batch as it will be stored; None when it goes."""
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
            if may_go and not batch.has_delete_horizon:
                return self._rewrite(batch, content, None, batch.record_count, batch.max_timestamp, horizon=True)
            return content
        keep_tombstones = not batch.has_delete_horizon or self.now_ms < batch.base_timestamp
        found = survey(self._map, records_of(batch, content), batch, keep_tombstones)
        if found.kept_count == 0:
            return empty_batch(batch) if retain_empty else None
        set_horizon = found.has_tombstones and not batch.has_delete_horizon
        if found.kept_count == found.read_count and not set_horizon:
            return content
        max_timestamp = batch.max_timestamp if batch.is_log_append_time else found.max_timestamp
        return self._rewrite(batch, content, keep_tombstones, found.kept_count, max_timestamp, horizon=set_horizon)

    def _rewrite(
        self,
        batch: Batch,
        content: bytes,
        keep_tombstones: bool | None,
        count: int,
        max_timestamp: int,
        *,
        horizon: bool,
    ) -> bytearray:
        """The kept records (`keep_tombstones` None: all) under the batch's own codec; with `horizon` a new delete
        horizon, which takes the place of the base timestamp."""
        attributes = batch.attributes
        base_timestamp = batch.base_timestamp
        if horizon:
            attributes |= HORIZON_BIT
            base_timestamp = self.now_ms + self._config.delete_retention_ms
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
            # Checksums are verified, or a rewritten batch would make a flaw on the disk look sound.
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
            # Without it the loop's thread waits for the interpreter's switch interval, 5 ms, at every turn.
            self._since_yield = 0
            time.sleep(0)


class Transactions:
    """Which batches were aborted and which markers are of no more use, told batch by batch in the order of offsets
    (Kafka: CleanedTransactionMetadata). `target` gets the index entries of the abort markers that stay."""

    def __init__(self, aborted: list[Aborted]) -> None:
        self._waiting = aborted
        self._next = 0
        # producer id -> [index entry, whether one of its batches was seen]
        self._aborting: dict[int, tuple[Aborted, list[bool]]] = {}
        self._committing: set[int] = set()
        self.target: Segment | None = None

    def _begin_to(self, offset: int) -> None:
        while self._next < len(self._waiting) and self._waiting[self._next][1] <= offset:
            entry = self._waiting[self._next]
            self._next += 1
            self._aborting.setdefault(entry[0], (entry, [False]))

    def on_data(self, batch: Batch) -> bool:
        """Whether the batch belongs to an aborted transaction."""
        self._begin_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        found = self._aborting.get(batch.producer_id)
        if found is None:
            self._committing.add(batch.producer_id)
            return False
        found[1][0] = True
        return True

    def on_marker(self, batch: Batch, content: bytes) -> bool:
        """Whether the marker may go: no batch of its transaction was seen."""
        self._begin_to(batch.last_offset)
        kind = _control_type(batch, content)
        if kind is None:
            return True
        if kind == ControlType.ABORT:
            found = self._aborting.pop(batch.producer_id, None)
            if found is None or not found[1][0]:
                return True
            if self.target is not None:
                self.target.txn_index.append(*found[0])
            return False
        if kind == ControlType.COMMIT:
            if batch.producer_id in self._committing:
                self._committing.discard(batch.producer_id)
                return False
            return True
        return False


def _control_type(batch: Batch, content: bytes) -> int | None:
    """The type of a control batch, None for one that compaction emptied."""
    if batch.record_count == 0:
        return None
    record = next(iterate(content))
    return int.from_bytes((record.key or b"")[2:4], "big")


def records_of(batch: Batch, content: bytes) -> memoryview | bytes | bytearray:
    """The records of a batch, decompressed."""
    section = memoryview(content)[HEADER_SIZE:]
    return decompress(batch.compression, section, LIMIT_BYTES) if batch.compression else section  # type: ignore[return-value]


def empty_batch(batch: Batch) -> bytearray:
    """The batch without its records: it still tells producer, epoch, sequence and last offset."""
    return seal(b"", batch, batch.attributes & ~(CODEC_BITS | HORIZON_BIT), -1, batch.max_timestamp, 0)


def _first_offset(entry: Aborted) -> int:
    return entry[1]


def _sync(path: str, modified_ns: int) -> None:
    """Put a new file on the disk, with the age of what it replaces: retention may go by it."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        if modified_ns:
            os.utime(fd, ns=(modified_ns, modified_ns))
        os.fsync(fd)
    finally:
        os.close(fd)

"""From files to a `PartitionLog`: after a clean stop by reading as little as possible, after a crash by scanning what
was not known to be on the disk (Kafka: LogLoader).

What a crash can leave: a torn batch at the end, indexes and snapshots that are behind or torn, half of a compaction's
swap. The torn tail is cut at the first bad batch, indexes are rebuilt, producer state comes from the newest good
snapshot and the batches after it."""

from __future__ import annotations

import logging
import os

from kafka_shim.cext.batch import BatchError
from kafka_shim.cext.records import iterate, parse_marker
from kafka_shim.storage import names, producer_snapshot
from kafka_shim.storage.checkpoint import CheckpointError
from kafka_shim.storage.producers import Marker
from kafka_shim.storage.segments import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.cext.batch import Batch
    from kafka_shim.storage.home import Home
    from kafka_shim.storage.log import PartitionLog

logger = logging.getLogger(__name__)


class Start:
    """What the checkpoints of the data directory say about one partition."""

    __slots__ = ("clean", "recovery_point", "start_offset")

    def __init__(self, *, clean: bool, start_offset: int = 0, recovery_point: int = 0) -> None:
        self.clean = clean
        self.start_offset = start_offset
        self.recovery_point = recovery_point


def load(log: PartitionLog, home: Home, start: Start) -> None:
    """Fill `log` from its directory. Raises OSError."""
    _Loader(log, home, start).run()


class _Loader:
    """The work of one `load`."""

    def __init__(self, log: PartitionLog, home: Home, start: Start) -> None:
        self.log = log
        self.home = home
        self.start = start
        self.now_ms = home.clock.now_ms()
        # Offsets of the snapshot files; those found bad are removed from it.
        self.snapshots: list[int] = []
        # `log.producers` holds exactly the batches below this offset; -1: nothing was built yet.
        self.state_offset = -1

    def run(self) -> None:
        log = self.log
        files = list_files(log.directory)
        if any(name.endswith((names.DELETED, names.CLEANED, names.SWAP)) for name in files):
            files = finish_swaps(log.directory, files)
        sizes = {names.offset_of(name): size for name, size in files.items() if name.endswith(names.LOG)}
        _remove_orphans(log.directory, files, sizes)
        for base_offset in sorted(sizes):
            segment = Segment(log.directory, base_offset, self.home.files, self.now_ms)
            segment.attach(sizes[base_offset])
            log.segments.append(segment)
        try:
            log.epochs.load()
        except CheckpointError as err:
            logger.warning("%s: leader epochs are read from the batches: %s", log.name, err)
        self.snapshots = sorted(names.offset_of(name) for name in files if name.endswith(names.SNAPSHOT))
        self.recover_segments(files)
        self.load_offsets()
        self.drop_stray_snapshots()
        self.load_producers()

    # --- segments

    def recover_segments(self, files: dict[str, int]) -> None:
        """Rebuild the segments that may be torn (after a crash: from the recovery point) or lack an index."""
        log = self.log
        torn_from = len(log.segments)
        if not self.start.clean and log.segments:
            torn_from = max(log.segment_at(self.start.recovery_point), 0)
        cut = False
        for number, segment in enumerate(list(log.segments)):
            if cut:
                logger.warning("%s: segment %d after a cut is removed", log.name, segment.base_offset)
                segment.remove()
                log.segments.remove(segment)
            elif (
                number >= torn_from
                or names.file_name(segment.base_offset, names.INDEX) not in files
                or (not self.start.clean and segment.has_damaged_index())
            ):
                cut_bytes = self.recover_segment(number, segment)
                segment.close_file()
                if cut_bytes:
                    logger.warning(
                        "%s: cut %d bytes at position %d of segment %d, where no whole batch follows",
                        log.name,
                        cut_bytes,
                        segment.size_bytes,
                        segment.base_offset,
                    )
                    cut = number >= torn_from

    def recover_segment(self, number: int, segment: Segment) -> int:
        """Scan one segment; its `.txnindex` needs the producers' state from before it. Answers the bytes cut."""
        log = self.log
        self.producers_at(segment.base_offset)

        def on_batch(batch: Batch) -> None:
            if batch.leader_epoch > log.epochs.latest:
                log.epochs.assign(batch.leader_epoch, batch.base_offset)
            replay_batch(log, segment, batch)

        cut_bytes = segment.rebuild(log.config.index_interval_bytes, on_batch)
        if number + 1 < len(log.segments):
            segment.store_indexes()  # the active one's go to their files at its end
        later = log.segments[number + 1].base_offset if number + 1 < len(log.segments) else 0
        self.state_offset = log.producers.next_offset if cut_bytes else max(later, log.producers.next_offset)
        return cut_bytes

    # --- offsets

    def load_offsets(self) -> None:
        """Log end and start, at least one segment, epochs inside them."""
        log, start = self.log, self.start
        end_offset = log.segments[-1].read_next_offset() if log.segments else start.start_offset
        if end_offset < start.start_offset:
            logger.warning(
                "%s: the log ends at %d, below its start offset %d: it begins anew there",
                log.name,
                end_offset,
                start.start_offset,
            )
            for segment in log.segments:
                segment.remove()
            log.segments.clear()
            log.epochs.clear()
            end_offset = start.start_offset
        if not log.segments:
            log.segments.append(Segment(log.directory, end_offset, self.home.files, self.now_ms))
        log.log_end_offset = end_offset
        log.log_start_offset = max(start.start_offset, log.segments[0].base_offset)
        log.epochs.truncate_from_end(end_offset)
        log.epochs.truncate_from_start(log.log_start_offset)
        log.recovery_point = end_offset if start.clean else min(start.recovery_point, end_offset)
        active = log.segments[-1]
        if active.size_bytes:
            index = active.offset_index
            last_indexed = index.at(index.count - 1)[1] if index.count else 0
            active.bytes_since_index = active.size_bytes - last_indexed
        active.close_file()

    # --- producers

    def drop_stray_snapshots(self) -> None:
        """Keep the snapshots at the base of a segment, and the newest behind the last base; none may claim what the log
        does not hold."""
        log = self.log
        bases = {segment.base_offset for segment in log.segments}
        stray = [offset for offset in self.snapshots if offset not in bases and offset <= log.log_end_offset]
        newest = stray[-1] if stray and stray[-1] >= max(bases) else -1
        for offset in list(self.snapshots):
            if not ((offset in bases or offset == newest) and log.log_start_offset < offset <= log.log_end_offset):
                self.remove_snapshot(offset)

    def load_producers(self) -> None:
        log = self.log
        producers = log.producers
        if not self.snapshots and self.start.clean and self.state_offset < 0:
            # A clean stop leaves a snapshot wherever there is state to keep.
            producers.clear(log.log_end_offset)
            producers.snapshot_offset = log.log_end_offset
            return
        self.producers_at(log.log_end_offset)
        producers.expire(self.now_ms, self.home.config.producer_id_expiration_ms)

    def producers_at(self, offset: int) -> None:
        """Build the state of all batches below `offset`: the newest good snapshot at or below it, then what follows."""
        log = self.log
        producers = log.producers
        if self.state_offset == offset:
            return
        producers.clear(max(log.log_start_offset, log.segments[0].base_offset if log.segments else 0))
        for at in [number for number in reversed(self.snapshots) if number <= offset]:
            try:
                entries = producer_snapshot.read(f"{log.directory}/{names.file_name(at, names.SNAPSHOT)}")
            except (producer_snapshot.SnapshotError, FileNotFoundError) as err:
                logger.warning("%s: producer snapshot %d is not used: %s", log.name, at, err)
                self.remove_snapshot(at)
                continue
            producers.load(entries, at, self.now_ms, self.home.config.producer_id_expiration_ms)
            break
        _replay(log, offset)
        producers.next_offset = max(producers.next_offset, offset)
        self.state_offset = offset

    def remove_snapshot(self, offset: int) -> None:
        self.snapshots.remove(offset)
        try:
            os.unlink(f"{self.log.directory}/{names.file_name(offset, names.SNAPSHOT)}")
        except FileNotFoundError:
            return


def _replay(log: PartitionLog, end_offset: int) -> None:
    first = log.producers.next_offset
    if first >= end_offset:
        return
    for segment in log.segments[max(log.segment_at(first), 0) :]:
        if segment.base_offset >= end_offset:
            break
        found = segment.find(first) if segment.size_bytes else None
        if found is None:
            continue
        for batch in segment.walk(found[0]):
            if batch.base_offset >= end_offset:
                break
            # The log may start inside a batch (DeleteRecords), which counts as a whole.
            if batch.last_offset >= first:
                replay_batch(log, segment, batch, index=False)


def replay_batch(log: PartitionLog, segment: Segment, batch: Batch, *, index: bool = True) -> None:
    """Apply a stored batch to the producers; with `index` an abort marker also goes to the segment's `.txnindex`."""
    producers = log.producers
    if batch.producer_id >= 0:
        marker = _marker_of(segment, batch) if batch.is_control and batch.record_count > 0 else None
        ended = producers.replay(batch, marker)
        if ended is not None and marker is not None and not marker.commit and index:
            segment.txn_index.append(batch.producer_id, ended[0], batch.base_offset, ended[1])
    producers.next_offset = batch.next_offset


def _marker_of(segment: Segment, batch: Batch) -> Marker | None:
    try:
        record = next(iterate(segment.read(batch.position, batch.size_bytes)))
        commit, coordinator_epoch = parse_marker(record.key or b"", record.value or b"")
    except (BatchError, ValueError, StopIteration):
        return None  # a control record of another kind, as the metadata log has them
    return Marker(batch.producer_id, batch.producer_epoch, coordinator_epoch, commit, record.timestamp)


def list_files(directory: str) -> dict[str, int]:
    """Name -> size of the .log files, 0 of all others (their size is not asked for)."""
    with os.scandir(directory) as entries:
        return {
            entry.name: entry.stat().st_size if entry.name.endswith(names.LOG) else 0
            for entry in entries
            if entry.is_file(follow_symlinks=False)
        }


def finish_swaps(directory: str, files: dict[str, int]) -> dict[str, int]:
    """Bring a directory in which a crash interrupted a compaction to its state before or after it; answers its files.

    `.cleaned` files are a swap that had not been decided: away with them, and with swap files at or above them. What is
    left as `.swap` was decided: the segments that it replaces go, and it takes their names."""
    cleaned = [names.offset_of(name) for name in files if name.endswith(names.CLEANED)]
    first_undecided = min(cleaned, default=None)
    for name in list(files):
        undecided = first_undecided is not None and names.offset_of(name) >= first_undecided
        # `.checkpoint.deleted` is a snapshot of the metadata log, which has its own life.
        deleted = name.endswith(names.DELETED) and ".checkpoint" not in name
        if deleted or name.endswith(names.CLEANED) or (name.endswith(names.SWAP) and undecided):
            os.unlink(f"{directory}/{name}")
            del files[name]
    swapped = [name for name in files if name.endswith(names.LOG + names.SWAP)]
    if swapped:
        first = min(names.offset_of(name) for name in swapped)
        end = max(_end_of_swap(directory, name) for name in swapped)
        for name in list(files):
            replaced = name.endswith((*names.SEGMENT_SUFFIXES, names.SNAPSHOT)) and first <= names.offset_of(name) < end
            if replaced:
                os.unlink(f"{directory}/{name}")
        logger.info("%s: finished the swap of compacted segments from offset %d to %d", directory, first, end)
    for name in files:
        if name.endswith(names.SWAP):
            os.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    return list_files(directory)


def _end_of_swap(directory: str, name: str) -> int:
    from kafka_shim.storage.open_files import OpenFiles

    segment = Segment(directory, names.offset_of(name), OpenFiles(), 0, names.SWAP)
    segment.attach(os.stat(f"{directory}/{name}").st_size)
    try:
        return max(segment.read_next_offset(), segment.base_offset + 1)
    finally:
        segment.abandon()


def _remove_orphans(directory: str, files: dict[str, int], sizes: dict[int, int]) -> None:
    for name in files:
        if name.endswith((names.INDEX, names.TIME_INDEX, names.TXN_INDEX)) and names.offset_of(name) not in sizes:
            logger.warning("%s/%s has no .log file and is removed", directory, name)
            os.unlink(f"{directory}/{name}")

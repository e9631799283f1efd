"""Load a `LocalLog` from its files (Kafka: LogLoader).

After a clean stop as little as possible is read. After a crash everything from the recovery point on is scanned.

A crash can leave a torn batch at the end of the log, indexes and snapshots that are behind or torn, and a partly
completed swap of compacted segments. Recovery truncates the log at the first invalid batch, rebuilds the indexes, and
loads the producer state from the newest valid snapshot and the batches after it."""

from __future__ import annotations

import errno
import logging
import os
from asyncio import CancelledError
from contextlib import suppress

from kafka_shim.cext.batch import BatchError, Verdict
from kafka_shim.cext.records import iterate, parse_marker
from kafka_shim.storage import names, producer_snapshot
from kafka_shim.storage.checkpoint import CheckpointError
from kafka_shim.storage.index import WRITE_CHUNK_BYTES
from kafka_shim.storage.log_files import finish_swaps, list_files, remove_orphans
from kafka_shim.storage.producers import NO_OFFSET, Marker
from kafka_shim.storage.segments import Segment
from kafka_shim.storage.txn_index import TxnIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.cext.batch import Batch
    from kafka_shim.storage.local_log import LocalLog
    from kafka_shim.storage.producers import ProducerEntry
    from kafka_shim.storage.services import LogServices
    from kafka_shim.storage.txn_index import Aborted

logger = logging.getLogger(__name__)

NEVER = 0x7FFFFFFFFFFFFFFF


class Start:
    """The checkpointed state of one partition: clean stop or not, log start offset, recovery point."""

    __slots__ = ("clean", "recovery_point", "start_offset")

    def __init__(self, *, clean: bool, start_offset: int = 0, recovery_point: int = 0) -> None:
        self.clean = clean
        self.start_offset = start_offset
        self.recovery_point = recovery_point


def load(log: LocalLog, services: LogServices, start: Start) -> None:
    """Load `log` from its directory. Raises OSError, and CancelledError if the start is given up meanwhile: the next
    one starts over, as after a crash."""
    try:
        _Loader(log, services, start).run()
    except CancelledError:
        for segment in log.segments:
            segment.abandon()
        raise


class _Loader:
    """The state of one `load` call."""

    def __init__(self, log: LocalLog, services: LogServices, start: Start) -> None:
        self.log = log
        self.services = services
        self.start = start
        self.now_ms = services.clock.now_ms()
        # Offsets of the snapshot files. Invalid ones are removed.
        self.snapshots: list[int] = []
        # `log.producers` covers exactly the batches below this offset; -1: not built yet.
        self.state_offset = -1
        # From this segment on all are scanned, because they may be torn.
        self.torn_from = 0
        # The lowest base offset of a segment whose files were rewritten, though they were on the disk already.
        self.rewritten_from = NEVER

    def run(self) -> None:
        log = self.log
        files = list_files(log.directory)
        if any(name.endswith((names.DELETED, names.CLEANED, names.SWAP)) for name in files):
            files = finish_swaps(log.directory, files)
        sizes = {names.offset_of(name): size for name, size in files.items() if name.endswith(names.LOG)}
        remove_orphans(log.directory, files, sizes)
        for base_offset in sorted(sizes):
            segment = Segment(log.directory, base_offset, self.services.files, self.now_ms)
            segment.attach(sizes[base_offset])
            log.segments.append(segment)
        try:
            log.epochs.load()
        except CheckpointError as err:
            logger.warning("%s: leader epochs are read from the batches: %s", log.name, err)
        self.snapshots = sorted(names.offset_of(name) for name in files if name.endswith(names.SNAPSHOT))
        # As in Kafka: with them comes a transaction of which no record is left, and it would hold back readers.
        start_offset = max(self.start.start_offset, log.segments[0].base_offset if log.segments else 0)
        for offset in [offset for offset in self.snapshots if offset <= start_offset]:
            self.remove_snapshot(offset)
        if not self.start.clean:
            # After a power cut one may be there whose last batches are not: a retry of these would be a duplicate of
            # nothing, and what a marker had aborted be read. `recover_segment` rewrites them.
            for offset in [offset for offset in self.snapshots if offset > self.start.recovery_point]:
                self.remove_snapshot(offset)
        self.recover_segments(files)
        self.load_offsets()
        self.drop_stray_snapshots()
        self.load_producers()

    # --- segments

    def recover_segments(self, files: dict[str, int]) -> None:
        """Rebuild the segments that may be torn (after a crash, from the recovery point on) or have a missing or
        damaged index."""
        log = self.log
        self.torn_from = len(log.segments)
        if not self.start.clean and log.segments:
            self.torn_from = max(log.segment_at(self.start.recovery_point), 0)
        if not log.epochs.entries:
            self.read_epochs(log.segments[: self.torn_from])
        for number, segment in enumerate(list(log.segments)):
            if number == len(log.segments):
                break  # those from here on came after a cut
            if (
                number >= self.torn_from
                or names.file_name(segment.base_offset, names.INDEX) not in files
                or (not self.start.clean and segment.has_damaged_index())
                or self.has_damaged_txn_index(number, segment, files)
            ):
                self.recover_segment(number, segment)
                segment.close_file()

    def read_epochs(self, segments: list[Segment]) -> None:
        """Take the leader epochs, whose file is damaged or gone, from the batches of segments that need not be scanned.
        They ascend: behind the epoch with which the next segment begins, a segment has no other."""
        found: list[tuple[int, int]] = []
        later = NEVER
        for segment in reversed(segments):
            here: list[tuple[int, int]] = []
            for batch in segment.walk():
                if not here or batch.leader_epoch > here[-1][0]:
                    here.append((batch.leader_epoch, batch.base_offset))
                if batch.leader_epoch >= later:
                    break
            segment.close_file()
            if here:
                found[:0] = here
                later = here[0][0]
        self.log.epochs.take_over(found)

    def has_damaged_txn_index(self, number: int, segment: Segment, files: dict[str, int]) -> bool:
        """Whether a `.txnindex` lacks entries that it had, after a clean stop too: read_committed would show what was
        aborted. A file without an entry is one that lost them, or whose first one was refused."""
        if names.file_name(segment.base_offset, names.TXN_INDEX) not in files:
            return False
        segments = self.log.segments
        end_offset = segments[number + 1].base_offset if number + 1 < len(segments) else NEVER
        try:
            index = TxnIndex(segment.path(names.TXN_INDEX), self.services.files)
            if index.is_whole(segment.base_offset, end_offset):
                return False
        except OSError as err:
            if err.errno != errno.EIO:
                raise
        logger.warning("%s: the transaction index of segment %d is damaged", self.log.name, segment.base_offset)
        return True

    def remove_after(self, number: int) -> None:
        """Remove the segments after one that is torn, before that is cut: with whole batches alone it would not say to
        the next recovery that they must go, if memory or the process ended in between."""
        log = self.log
        if number + 1 == len(log.segments):
            return
        while len(log.segments) > number + 1:
            segment = log.segments[-1]
            logger.warning("%s: segment %d after a cut is removed", log.name, segment.base_offset)
            segment.remove()
            log.segments.pop()
        self.services.flusher.sync_now([log.directory])

    def recover_segment(self, number: int, segment: Segment) -> None:
        """Rebuild one segment. Its `.txnindex` is rebuilt too, which requires the producer state at its base offset."""
        log = self.log
        if number < self.torn_from:
            self.rewritten_from = min(self.rewritten_from, segment.base_offset)
        self.producers_at(segment.base_offset)

        def on_batch(batch: Batch) -> Aborted | None:
            self.services.go_on()
            if batch.leader_epoch > log.epochs.latest:
                log.epochs.assign(batch.leader_epoch, batch.base_offset)
            return replay_batch(log, segment, batch)

        def before_cut() -> None:
            if number >= self.torn_from:
                self.remove_after(number)

        # Below the recovery point nothing but the indexes themselves tells the next start that they are not whole.
        cut_bytes = segment.rebuild(log.config.index_interval_bytes, on_batch, before_cut, sync=number < self.torn_from)
        if cut_bytes:
            logger.warning(
                "%s: cut %d bytes at position %d of segment %d, where no whole batch follows",
                log.name,
                cut_bytes,
                segment.size_bytes,
                segment.base_offset,
            )
        if number + 1 < len(log.segments) or len(segment.offset_index.tail) >= WRITE_CHUNK_BYTES:
            segment.store_rebuilt()  # small ones of the active segment are stored when it is rolled or closed
        later = log.segments[number + 1].base_offset if number + 1 < len(log.segments) else 0
        if later > self.start.recovery_point and not self.start.clean:
            self.write_snapshot(later)
        self.state_offset = log.producers.next_offset if cut_bytes else max(later, log.producers.next_offset)

    # --- offsets

    def read_end_offset(self) -> int:
        """Return the offset after the last batch. Rebuilds the active segment if it lost its end after a clean stop, as
        in a copy that was cut short: its file does not end with a batch, or a snapshot is of a later offset. What is
        appended behind half a batch could never be read, and the next recovery would cut it off."""
        active = self.log.segments[-1]
        end_offset, is_whole = active.read_end()
        if self.start.clean and not (is_whole and self.snapshots[-1:] <= [end_offset]):
            self.recover_segment(len(self.log.segments) - 1, active)
            end_offset, _ = active.read_end()
        return end_offset

    def load_offsets(self) -> None:
        """Set the log start and end offsets, make sure there is a segment, truncate the leader epochs to the log."""
        log, start = self.log, self.start
        end_offset = self.read_end_offset() if log.segments else start.start_offset
        if end_offset < start.start_offset:
            logger.warning(
                "%s: the log ends at %d, below its start offset %d: it starts empty there",
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
            log.segments.append(Segment(log.directory, end_offset, self.services.files, self.now_ms))
            if end_offset:
                log.segments[0].fd  # noqa: B018  (creates the file: its name alone tells the next start the offset)
        log.log_end_offset = end_offset
        log.log_start_offset = max(start.start_offset, log.segments[0].base_offset)
        log.epochs.truncate_from_end(end_offset)
        log.epochs.truncate_from_start(log.log_start_offset)
        # What was rewritten is on the disk with the next flush.
        log.recovery_point = min(end_offset if start.clean else start.recovery_point, end_offset, self.rewritten_from)
        active = log.segments[-1]
        if active.size_bytes:
            index = active.offset_index
            last_indexed = index.at(index.count - 1)[1] if index.count else 0
            active.bytes_since_index = active.size_bytes - last_indexed
        active.close_file()

    # --- producers

    def drop_stray_snapshots(self) -> None:
        """Keep the snapshots at segment base offsets and the newest one after the last base offset. Remove all others,
        including those above the log end offset."""
        log = self.log
        bases = {segment.base_offset for segment in log.segments}
        stray = [offset for offset in self.snapshots if offset not in bases and offset <= log.log_end_offset]
        newest = stray[-1] if stray and stray[-1] >= max(bases) else -1
        for offset in list(self.snapshots):
            if (offset not in bases and offset != newest) or offset > log.log_end_offset:
                self.remove_snapshot(offset)

    def load_producers(self) -> None:
        log = self.log
        producers = log.producers
        is_stopped_without = not self.snapshots and self.start.clean and self.state_offset < 0
        if is_stopped_without or log.log_start_offset == log.log_end_offset:
            # A clean stop writes a snapshot if there is producer state, so there is none. An empty log has none either,
            # as in Kafka: what `recover_segment` has replayed is of deleted records.
            producers.clear(log.log_end_offset)
            producers.snapshot_offset = log.log_end_offset
            return
        self.producers_at(log.log_end_offset)
        producers.expire(self.now_ms, self.services.config.producer_id_expiration_ms)

    def producers_at(self, offset: int) -> None:
        """Build the producer state of all batches below `offset` from the newest valid snapshot at or below it and the
        batches after that."""
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
            _find_open_transactions(log, entries, at)
            producers.load(entries, at, self.now_ms, self.services.config.producer_id_expiration_ms)
            break
        _replay(log, self.services, offset)
        producers.next_offset = max(producers.next_offset, offset)
        self.state_offset = offset

    def write_snapshot(self, offset: int) -> None:
        """Write the producer state as the snapshot at `offset`, which the next flush syncs; a full disk goes on
        without."""
        log = self.log
        with suppress(OSError):
            path = f"{log.directory}/{names.file_name(offset, names.SNAPSHOT)}"
            producer_snapshot.write(path, list(log.producers.entries.values()), sync=False)
            self.snapshots.append(offset)
            log.producers.snapshot_offset = offset

    def remove_snapshot(self, offset: int) -> None:
        self.snapshots.remove(offset)
        try:
            os.unlink(f"{self.log.directory}/{names.file_name(offset, names.SNAPSHOT)}")
        except FileNotFoundError:
            return


def _find_open_transactions(log: LocalLog, entries: list[ProducerEntry], end_offset: int) -> None:
    """Let each transaction that is open in the snapshot at `end_offset` begin with its first batch that is in the log.
    Compaction takes no batch of an open one. If it has taken all, the transaction has ended, and its marker may be gone
    too: nothing would end it, and it would hold back readers."""
    cleaned: dict[int, ProducerEntry] = {}
    for entry in entries:
        first_offset = entry.txn_first_offset
        if first_offset >= log.segments[0].base_offset:  # else retention has taken it
            segment = log.segments[log.segment_at(first_offset)]
            found = segment.find(first_offset) if segment.size_bytes else None
            if found is None or found[2] > first_offset:
                cleaned[entry.producer_id] = entry
    if not cleaned:
        return
    first_offset = min(entry.txn_first_offset for entry in cleaned.values())
    for segment in log.segments[log.segment_at(first_offset) :]:
        if segment.base_offset >= end_offset:
            break
        walk = segment.walk()
        for batch in walk:
            left = cleaned.get(batch.producer_id)
            if left is not None and left.txn_first_offset <= batch.base_offset < end_offset:
                left.txn_first_offset = batch.base_offset
                del cleaned[batch.producer_id]
        if walk.verdict != Verdict.OK:
            return  # what follows is not known
    for entry in cleaned.values():
        entry.txn_first_offset = NO_OFFSET


def _replay(log: LocalLog, services: LogServices, end_offset: int) -> None:
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
            # The log start offset may be inside a batch (DeleteRecords). The whole batch is applied.
            if batch.last_offset >= first:
                services.go_on()
                replay_batch(log, segment, batch)


def replay_batch(log: LocalLog, segment: Segment, batch: Batch) -> Aborted | None:
    """Apply a stored batch to the producer state. Returns the aborted transaction that it ends, if it is a marker."""
    producers = log.producers
    aborted = None
    if batch.producer_id >= 0:
        marker = _marker_of(segment, batch) if batch.is_control and batch.record_count > 0 else None
        ended = producers.replay(batch, marker)
        if ended is not None and marker is not None and not marker.commit:
            aborted = (batch.producer_id, ended[0], batch.base_offset, ended[1])
    producers.next_offset = batch.next_offset
    return aborted


def _marker_of(segment: Segment, batch: Batch) -> Marker | None:
    try:
        record = next(iterate(segment.read(batch.position, batch.size_bytes)))
        commit, coordinator_epoch = parse_marker(record.key or b"", record.value or b"")
    except (BatchError, ValueError, StopIteration):
        return None  # another control record type, as in the metadata log
    return Marker(batch.producer_id, batch.producer_epoch, coordinator_epoch, commit, record.timestamp)

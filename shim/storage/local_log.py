"""The files of one partition: segments, roll, fsync, going offline and back, closing (Kafka: LocalLog)."""

from __future__ import annotations

import errno
import logging
import threading
from bisect import bisect_right
from functools import partial

from kafka_shim.cext.log_base import LogBase
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage import names, producer_snapshot
from kafka_shim.storage.epochs import LeaderEpochs
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.producers import ProducerEntry, Producers
from kafka_shim.storage.segments import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path
    from typing import Protocol

    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.services import LogServices

    class LeavingSegments(Protocol):
        """`leaving.Leaving`."""

        @property
        def base_offset(self) -> int: ...
        def settle(self) -> None: ...


logger = logging.getLogger(__name__)

NEVER = 0x7FFFFFFFFFFFFFFF
# Guards `sync_round` and `sync_error` of every log, which the flusher's thread and the event loop both write. It is
# held for a few instructions only.
_SYNC_LOCK = threading.Lock()
# Errors after which the files are intact: the request fails and the partition stays online.
REFUSALS = (*OUT_OF_RESOURCES, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class UnprovenSyncError(OSError):
    """An fsync succeeded, but an earlier one had failed: the bytes may be lost all the same."""


class LocalLog(LogBase):
    """The state of one partition and what concerns its files alone. `log.PartitionLog` adds appends and reads.
    Event-loop thread only.

    Offsets named ``end`` or ``next`` are exclusive.
    """

    __slots__ = (
        "_failures_before",
        "_lso_position",
        "_services",
        "directory",
        "leaving",
        "name",
        "partition",
        "requested_point",
        "sync_failures",
        "sync_round",
        "topic",
        "topic_id",
    )

    def __init__(
        self, services: LogServices, directory: str, topic: str, topic_id: bytes, partition: int, config: TopicConfig
    ) -> None:
        # fixed
        self._services = services
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.name = f"{topic}-{partition}"
        self.key = (topic, partition)
        # changed from outside
        self.directory = directory
        self.config: TopicConfig = config
        self.leader_epoch = 0
        # the contents, loaded by `recovery`
        self.segments: list[Segment] = []
        # Those that retention has taken off `segments`, and whose files may still have their names.
        self.leaving: LeavingSegments | None = None
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.epochs: LeaderEpochs = LeaderEpochs(directory)
        self.producers: Producers = Producers(self.name)
        # All offsets below `recovery_point` are on the disk. `unflushed_since_ms` is -1 when nothing waits for fsync.
        self.recovery_point = 0
        # (the value of `sync_failures` then, the offset below which rolls have requested an fsync): void when another
        # fsync has failed since. The flusher thread counts `sync_failures`.
        self.requested_point = (0, 0)
        self.sync_failures = 0
        # What it was when `request_flush` was last called.
        self._failures_before = 0
        self.unflushed_since_ms = -1
        # Cached lookup: (first unstable offset, base offset of its segment, position in that segment).
        self._lso_position: tuple[int, int, int] | None = None
        # Counted for metrics, from the start of the broker.
        self.appended_bytes = self.appended_records = self.fetched_bytes = 0
        self._readers: dict[Callable[[], None], None] | None = None
        # Set by the flusher thread. It is kept because the kernel reports lost pages to only one fsync.
        self.sync_error: OSError | None = None
        # Grows with each failed fsync and each reopening. An fsync proves nothing that was requested in an older round.
        self.sync_round = 0
        self.is_offline = False
        self.is_closed = False

    @property
    def path(self) -> Path:
        """The partition's directory."""
        from pathlib import Path  # imported late: it costs milliseconds, and a start needs no Path

        return Path(self.directory)

    @property
    def size_bytes(self) -> int:
        """The total size of all .log files in bytes."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def active(self) -> Segment:
        """The active segment, which takes the appends."""
        return self.segments[-1]

    @property
    def oldest_offset(self) -> int:
        """The base offset of the oldest segment whose files a start would find."""
        return self.segments[0].base_offset if self.leaving is None else self.leaving.base_offset

    # --- segments

    def segment_at(self, offset: int) -> int:
        """Return the index in `segments` of the segment that contains `offset`, or -1 if it is below the first."""
        segments = self.segments
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return bisect_right(segments, offset, key=_base_offset) - 1

    def content_changed(self) -> None:
        """Discard the cached file position, because compaction or retention changed the segments."""
        self._lso_position = None

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and return a new one at the log end offset. One that begins there, which is empty,
        stays: a second one would have its files. Raises OSError."""
        end_offset = self.log_end_offset
        if self.segments[-1].base_offset == end_offset:
            return self.segments[-1]
        faults = self._services.faults
        if faults.armed:
            faults.reach("log.before_roll", topic=self.topic, partition=self.partition)
        full = self.segments[-1]
        full.store_indexes()
        begin_offset, failures = self.recovery_point, self.sync_failures
        # Without this a disk that is slower than the rolls would get each segment again with every roll.
        if self.requested_point[0] == failures:
            begin_offset = max(begin_offset, self.requested_point[1])
        unsynced = self.segments[max(self.segment_at(begin_offset), 0) :]
        paths = [path for segment in unsynced for path in segment.sync_paths()]
        paths.append(self.directory)  # the names of new files; not every file system stores them with the file
        snapshot = self.take_snapshot()
        if snapshot is not None:
            paths.append(snapshot)
        segment = Segment(self.directory, end_offset, self._services.files, now_ms)
        segment.fd  # noqa: B018  (creates the file: recovery takes the log end offset from the newest segment's name)
        self.segments.append(segment)
        sync_round = self.sync_round
        self._services.flusher.sync_later(
            paths, lambda: self._flushed_to(end_offset, sync_round, begin_offset), self._sync_failed
        )
        # Only now: where memory ended before, the next roll requests these too.
        self.requested_point = (failures, end_offset)
        if faults.armed:
            faults.reach("log.after_roll", topic=self.topic, partition=self.partition)
        logger.info("%s: new segment at offset %d", self.name, end_offset)
        return segment

    def take_snapshot(self) -> str | None:
        """Write a producer snapshot at the log end offset. Returns its path, or None if one exists. Raises OSError."""
        offset = self.producers.next_offset
        if offset <= self.producers.snapshot_offset:
            return None
        path = f"{self.directory}/{names.file_name(offset, names.SNAPSHOT)}"
        entries: list[ProducerEntry] = list(self.producers.entries.values())
        producer_snapshot.write(path, entries, sync=False)
        self.producers.snapshot_offset = offset
        return path

    # --- fsync

    def flush(self) -> None:
        """fsync everything up to the log end offset, and block until it is done (clean stop, metadata log). Raises
        KafkaError KAFKA_STORAGE_ERROR."""
        self._require_online()
        future = self.request_flush(is_urgent=True)
        try:
            future.result()
        except OSError as err:
            raise self.fail(err) from err

    def configure(self, config: TopicConfig) -> None:
        """Apply a changed topic configuration."""
        self.config = config
        self.want_flush()

    def want_flush_of_rest(self) -> None:
        """Have `flush.ms` count from now for what is not on the disk."""
        self.unflushed_since_ms = self._services.clock.now_ms()
        self.want_flush()

    def want_flush(self) -> None:
        """Register for the periodic flush check if `flush.ms` is set and the log has unflushed data."""
        if self.config.flush_ms < NEVER and self.unflushed_since_ms >= 0:
            self._services.wish_flush(self)

    def is_flush_due(self, now_ms: int) -> bool:
        """Whether `flush.ms` has passed since the first write that no fsync was requested for. A flush that failed for
        lack of descriptors or memory is due again after the same time. Ends the check once all is on the disk."""
        if self.unflushed_since_ms < 0:
            if self.recovery_point >= self.log_end_offset:
                self._services.flush_wanted.discard(self)
                return False
            if self.sync_failures == self._failures_before:
                return False  # it is under way
            self.unflushed_since_ms = now_ms
        return now_ms - self.unflushed_since_ms >= self.config.flush_ms

    def request_flush(self, *, is_urgent: bool = False, is_awaited: bool = True) -> Future[None]:
        """Request an fsync of everything up to the log end offset. The future completes when the data is on the disk.
        `is_urgent`: the event loop stands still until then. Without `is_awaited` what others wait for goes before."""
        end_offset, failures = self.log_end_offset, self.sync_failures
        begin_offset = self.recovery_point
        # With the segment that ends there: a flush leaves out its indexes, and its roll may not have synced them.
        *rolled, active = self.segments[max(self.segment_at(begin_offset - 1), 0) :]
        # The fsyncs that the rolls requested come later, and the recovery point passes what they would have synced.
        paths = [path for segment in rolled for path in segment.sync_paths()]
        if rolled and self.producers.snapshot_offset >= begin_offset:
            paths.append(f"{self.directory}/{names.file_name(self.producers.snapshot_offset, names.SNAPSHOT)}")
        paths += active.flush_paths(begin_offset)
        sync_round = self.sync_round
        flusher = self._services.flusher
        sync = partial(flusher.sync, is_urgent=is_urgent) if is_awaited else flusher.sync_later
        flushed = sync(paths, lambda: self._flushed_to(end_offset, sync_round, begin_offset), self._sync_failed)
        # Only now: where memory ended before, nothing is under way, and `flush.ms` stays due.
        self.unflushed_since_ms = -1
        self._failures_before = failures
        return flushed

    def _flushed_to(self, offset: int, sync_round: int, begin_offset: int) -> None:
        # Runs in the flusher thread, for what is from `begin_offset` on.
        # The kernel reports lost pages to one fsync only, and the next succeeds without them: it proves nothing until
        # `reopening` has written the bytes again, and neither does one that began before that.
        if sync_round != self.sync_round or self.sync_error is not None:
            raise UnprovenSyncError(
                errno.EIO, f"{self.name}: an earlier fsync failed, and the bytes before may be lost"
            )
        # Where it is before `begin_offset`, an earlier fsync failed for lack of a descriptor, and is requested again.
        if begin_offset <= self.recovery_point < offset:
            self.recovery_point = offset

    def _sync_failed(self, err: OSError) -> None:
        self.sync_failures += 1
        # Runs in the flusher thread. The next use of the partition takes it offline. If the process lacks descriptors
        # or memory, nothing was synced and nothing was lost: the waiting requests fail, and the next fsync starts at
        # the same recovery point.
        if err.errno not in OUT_OF_RESOURCES and not isinstance(err, UnprovenSyncError):
            with _SYNC_LOCK:
                self.sync_round += 1
                self.sync_error = self.sync_error or err

    # --- waiting readers

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback()` after each append, marker, raised log start offset, failure and deletion, until
        `unsubscribe`."""
        if self._readers is None:
            self._readers = {callback: None}
        else:
            self._readers[callback] = None

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        """Remove a callback added by `subscribe`. Does nothing if it is not subscribed."""
        if self._readers is not None:
            self._readers.pop(callback, None)
            if not self._readers:
                self._readers = None

    # --- life

    def check_sync(self) -> None:
        """Take the partition offline if an fsync failed since the last use."""
        if self.sync_error is not None and not self.is_offline:
            self.fail(self.sync_error, torn=True)

    def _require_online(self) -> None:
        if self.sync_error is not None:
            self.check_sync()
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is offline after an I/O error")
        if self.is_closed:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self.name} was deleted or closed")

    @property
    def high_watermark(self) -> int:
        """The high watermark (exclusive): read_uncommitted consumers may read below it."""
        return self.log_end_offset

    def fail(self, err: OSError, *, torn: bool = False) -> KafkaError:
        """Take the partition offline after an I/O error and return the KAFKA_STORAGE_ERROR to raise. The files stay as
        they are until `reopening` or the next start recovers them. If the system only lacks descriptors, memory or disk
        space (`REFUSALS`), the request fails and the partition stays online, unless `torn` says that the files are
        inconsistent."""
        if err.errno in REFUSALS and not torn:
            refusals = self._services.refusals
            refusals.write("%s refuses what is written: %s (%s)", self.name, err.strerror, self.directory)
        elif not self.is_offline:
            self.is_offline = True
            self._services.offline.add(self)  # before what may find no memory: else nobody opens it again
            logger.error("%s is offline, to be opened again soon: %s (%s)", self.name, err, self.directory)
            self._services.went_offline(self)
            for segment in self.segments:
                segment.abandon()
            self._wake()
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {err}")

    def came_back(self, sync_round: int) -> None:
        """Go online again after `reopening`, which began in `sync_round`, has reloaded the partition. The error of an
        fsync that failed since then is kept: the next use takes the partition offline."""
        self.is_offline = False
        with _SYNC_LOCK:
            if self.sync_round == sync_round:
                self.sync_error = None
            self.sync_round += 1
        self._lso_position = None
        self.requested_point = (0, 0)
        self.want_flush_of_rest()
        self._wake()

    def moved(self, directory: str) -> None:
        """Update the paths after the caller renamed the directory."""
        self.directory = directory
        self.epochs.moved(directory)
        for segment in self.segments:
            segment.moved(directory)

    def retire(self) -> None:
        """Close a deleted partition: store nothing more, close all files, wake waiting readers."""
        self.is_closed = True
        self._services.flush_wanted.discard(self)
        for segment in self.segments:
            segment.abandon()
        self._wake()

    def close(self) -> list[str]:
        """Close the partition for a clean stop: store the indexes and a producer snapshot. Returns the paths of the
        files that still need an fsync. The caller syncs them and then calls `closed`. Raises OSError."""
        self.check_sync()
        if self.is_closed or self.is_offline:
            return []
        self.epochs.close()
        snapshot = self.take_snapshot()
        # Where all records are on the disk too: a flush leaves out what a crash would rebuild, and a clean start takes
        # it as it is. Without them open transactions would end without a marker, and aborted ones be read.
        first = max(self.segment_at(self.recovery_point - 1), 0)
        for segment in self.segments:
            segment.close()
        self.is_closed = True
        self._wake()
        if self.log_end_offset <= self.recovery_point and snapshot is None and not self.appended_records:
            return []
        paths = [path for segment in self.segments[first:] for path in segment.sync_paths()]
        paths += [self.directory, self.epochs.path]
        return [*paths, snapshot] if snapshot else paths

    def closed(self) -> None:
        """Advance the recovery point: the files that `close` returned are on the disk."""
        if not self.is_offline:
            self.recovery_point = self.log_end_offset


def _base_offset(segment: Segment) -> int:
    return segment.base_offset

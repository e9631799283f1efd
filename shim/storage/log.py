"""One partition's log: append, read, look up, truncate. The recipe of an append is `append_as_leader`."""

from __future__ import annotations

import errno
import logging
from bisect import bisect_right

from kafka_shim.cext.batch import scan, stamp
from kafka_shim.cext.records import build_marker, recompress
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage import lookup, names, producer_snapshot, validation
from kafka_shim.storage.epochs import LeaderEpochs
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.producers import Marker, ProducerEntry, ProducerRefusal, Producers
from kafka_shim.storage.results import Appended, Buffer, Fetched, FoundOffset, ProducerStatus
from kafka_shim.storage.segments import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path
    from typing import Any

    from kafka_shim.cext.batch import Batch
    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.home import Home
    from kafka_shim.storage.verification import Verification

logger = logging.getLogger(__name__)

LOG_APPEND_TIME = "LogAppendTime"
NEVER = 0x7FFFFFFFFFFFFFFF
ALL_BYTES = 0x7FFFFFFFFFFFFFFF
# The system refused, nothing is damaged: the request fails, the partition goes on.
REFUSALS = (*OUT_OF_RESOURCES, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class PartitionLog:
    """One partition: segments, indexes, producer state. Owned by `Logs`; event-loop thread only; closed by `Logs`.

    Offsets are exclusive where named ``end`` or ``next``. There are no followers, so high_watermark == log_end_offset.
    """

    __slots__ = (
        "_home",
        "_lso_position",
        "_readers",
        "config",
        "directory",
        "epochs",
        "is_closed",
        "is_offline",
        "leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "name",
        "partition",
        "producers",
        "recovery_point",
        "segments",
        "sync_error",
        "topic",
        "topic_id",
        "unflushed_since_ms",
    )

    def __init__(
        self, home: Home, directory: str, topic: str, topic_id: bytes, partition: int, config: TopicConfig
    ) -> None:
        # fixed
        self._home = home
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.name = f"{topic}-{partition}"
        # changed from outside
        self.directory = directory
        self.config = config
        self.leader_epoch = 0
        # the content; `recovery` fills it
        self.segments: list[Segment] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.epochs = LeaderEpochs(directory)
        self.producers = Producers(self.name)
        # everything below is on the disk; -1: nothing waits for fsync
        self.recovery_point = 0
        self.unflushed_since_ms = -1
        # (first unstable offset, base offset of its segment, position there) once looked up
        self._lso_position: tuple[int, int, int] | None = None
        self._readers: list[Callable[[], None]] | None = None
        # Set by the flusher's thread; a failed fsync says only once that pages are lost.
        self.sync_error: OSError | None = None
        self.is_offline = False
        self.is_closed = False

    @property
    def path(self) -> Path:
        """The partition's directory."""
        from pathlib import Path  # costs milliseconds of a start, which needs no Path

        return Path(self.directory)

    @property
    def high_watermark(self) -> int:
        """The end of what every reader may see."""
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of what a read_committed reader may see: the first open transaction, or the high watermark (B14)."""
        first_open = self.producers.first_open_offset
        return self.log_end_offset if first_open < 0 else max(first_open, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Of all .log files."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def active(self) -> Segment:
        """The segment that is written to."""
        return self.segments[-1]

    # --- append

    def append_as_leader(
        self, records: Buffer, *, now_ms: int, version: int, verification: Verification | None = None
    ) -> Appended:
        """Append one batch of a client, whole or not at all. `records` is a Produce request's field: it is stamped in
        place when it is writable, so it is the log's until the answer. `version` is the Produce version.

        Raises KafkaError with the code of A3-A10, B9; a `RecordsError` names the bad records."""
        config = self.config
        self._require_online()
        batch = validation.read_header(records, self.name, version, config)
        summary = validation.check_records(records, batch, self.name, now_ms, config)
        codec = validation.target_codec(batch, config)
        if codec != batch.compression:
            records, batch = self._recompress(records, batch, codec)
        if batch.producer_id >= 0:
            entry = self.producers.entries.get(batch.producer_id)
            if entry is not None and (cached := entry.duplicate_of(batch)) is not None:
                # The first one may still be on its way to the disk.
                flushed = self.request_flush() if self._owes_flush(cached[3]) else None
                return Appended(cached[2], cached[3], cached[4], self.log_start_offset, duplicate=True, flushed=flushed)
            self._check_producer(batch, verification, client=True)
        append_time_ms = now_ms if config.message_timestamp_type == LOG_APPEND_TIME else -1
        max_timestamp = now_ms if append_time_ms >= 0 else summary.max_timestamp
        writable = _writable(records, batch.size_bytes)
        base_offset = self.log_end_offset
        stamp(writable, 0, base_offset, self.leader_epoch, append_time_ms, summary.max_timestamp)
        last_offset = base_offset + batch.last_offset_delta
        self._write(writable, batch.size_bytes, base_offset, last_offset, max_timestamp, now_ms)
        if batch.producer_id >= 0:
            self.producers.apply_data(batch, base_offset, last_offset, max_timestamp)
        return self._advance(base_offset, last_offset, append_time_ms, batch.size_bytes, now_ms)

    def append_batch(self, batch: bytearray, *, now_ms: int, verification: Verification | None = None) -> Appended:
        """Append one batch that the broker built itself (offsets, members, transactions, metadata); stamps in place.

        With a producer id its epoch is checked; its sequences are not, it has none. The caller has made sure that the
        transaction holds the partition."""
        self._require_online()
        header = scan(batch, check_crc=False)
        if header.producer_id >= 0:
            self._check_producer(header, verification, client=False)
        base_offset = self.log_end_offset
        stamp(batch, 0, base_offset, self.leader_epoch)
        last_offset = base_offset + header.last_offset_delta
        self._write(batch, header.size_bytes, base_offset, last_offset, header.max_timestamp, now_ms)
        if header.producer_id >= 0:
            self.producers.apply_data(header, base_offset, last_offset, header.max_timestamp)
        return self._advance(base_offset, last_offset, -1, header.size_bytes, now_ms)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        transaction_version: int,
        now_ms: int,
    ) -> Appended:
        """Append a transaction marker. Raises INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED by the rules of
        B11."""
        self._require_online()
        marker = Marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
        try:
            self.producers.check_marker(marker, transaction_version)
        except ProducerRefusal as err:
            logger.info("%s", err)
            raise
        offset = self.log_end_offset
        batch = build_marker(
            producer_id,
            producer_epoch,
            coordinator_epoch,
            commit,
            now_ms,
            base_offset=offset,
            leader_epoch=self.leader_epoch,
        )
        self._write(batch, len(batch), offset, offset, now_ms, now_ms)
        ended = self.producers.apply_marker(marker, offset)
        if ended is not None and not commit:
            self._index_aborted(producer_id, ended[0], offset, ended[1])
        appended = self._advance(offset, offset, -1, len(batch), now_ms)
        for hook in self._home.on_marker:
            hook(self, producer_id, producer_epoch, commit, offset)
        return appended

    def _check_producer(self, batch: Batch, verification: Verification | None, *, client: bool) -> None:
        must_verify = client and self._home.config.transaction_partition_verification_enable
        try:
            self.producers.check_data(batch, verification, client=client, must_verify=must_verify)
        except ProducerRefusal as err:
            logger.info("%s", err)
            raise

    def _recompress(self, records: Buffer, batch: Batch, codec: int) -> tuple[bytearray, Batch]:
        """Under the topic's own `compression.type`; the size is checked again, since it may have grown."""
        stored = recompress(records, batch, codec, validation.level_of(codec, self.config))
        if len(stored) > self.config.max_message_bytes:
            raise validation.too_large(self.name, len(stored), self.config)
        return stored, scan(stored, check_crc=False)

    def _write(
        self, batch: Buffer, size_bytes: int, base_offset: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> None:
        """Hand the stamped batch to the operating system. After a failure nothing is changed, and the partition is
        offline."""
        config = self.config
        faults = self._home.faults
        if size_bytes > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size_bytes} bytes in append to partition {self.name}, which exceeds the "
                f"maximum configured segment size of {config.segment_bytes}.",
            )
        try:
            if faults.armed:
                faults.reach("log.before_write", topic=self.topic, partition=self.partition)
            segment = self.segments[-1]
            if segment.is_full(size_bytes, max_timestamp_ms, last_offset, config, now_ms):
                segment = self.roll(now_ms)
            if self.epochs.latest != self.leader_epoch:
                self.epochs.assign(self.leader_epoch, base_offset)
            segment.append((batch,), size_bytes, last_offset, max_timestamp_ms, config.index_interval_bytes)
        except OSError as err:
            raise self.fail(err) from err
        if faults.armed:
            try:
                faults.reach("log.after_write", topic=self.topic, partition=self.partition)
            except OSError as err:
                raise self.fail(err, torn=True) from err

    def _advance(
        self, base_offset: int, last_offset: int, append_time_ms: int, size_bytes: int, now_ms: int
    ) -> Appended:
        """The batch counts from here on: move the end, ask for an fsync where the configuration wants one, wake
        readers."""
        self.log_end_offset = self.producers.next_offset = last_offset + 1
        if self.unflushed_since_ms < 0:
            self.unflushed_since_ms = now_ms
            self.want_flush()
        flushed = None
        if self._owes_flush(last_offset):
            flushed = self.request_flush()
        faults = self._home.faults
        if faults.armed:
            faults.reach("log.after_append", topic=self.topic, partition=self.partition)
        if self._readers is not None:
            self._wake()
        return Appended(base_offset, last_offset, append_time_ms, self.log_start_offset, False, size_bytes, flushed)

    def _owes_flush(self, last_offset: int) -> bool:
        """Whether `flush.messages` wants what ends here on the disk before its answer."""
        return last_offset + 1 - self.recovery_point >= self.config.flush_messages

    def _index_aborted(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        try:
            self.active.txn_index.append(producer_id, first_offset, last_offset, last_stable_offset)
        except (OSError, ValueError) as err:
            # The marker is in the log and recovery will rebuild the index; until then no reader may be misled, so that
            # being out of descriptors is no excuse here.
            self.log_end_offset = self.producers.next_offset = last_offset + 1
            raise self.fail(OSError(errno.EIO, f"the aborted transaction cannot be indexed: {err}")) from err

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and begin one at the log's end. Raises OSError."""
        faults = self._home.faults
        if faults.armed:
            faults.reach("log.before_roll", topic=self.topic, partition=self.partition)
        full = self.segments[-1]
        full.store_indexes()
        end_offset = self.log_end_offset
        paths = full.sync_paths()
        snapshot = self.take_snapshot()
        if snapshot is not None:
            paths.append(snapshot)
        segment = Segment(self.directory, end_offset, self._home.files, now_ms)
        segment.fd  # noqa: B018  (the file must exist: recovery takes the newest segment's name for the log's end)
        self.segments.append(segment)
        self._home.flusher.sync(paths, lambda: self._flushed_to(end_offset), self._sync_failed)
        if faults.armed:
            faults.reach("log.after_roll", topic=self.topic, partition=self.partition)
        logger.info("%s: new segment at offset %d", self.name, end_offset)
        return segment

    # --- transactions

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether this producer has a transaction open here at this epoch: no verification needed."""
        return self.producers.is_open(producer_id, producer_epoch)

    def start_verification(
        self, producer_id: int, base_sequence: int, producer_epoch: int, supports_epoch_bump: bool
    ) -> Verification | None:
        """The guard of B9 to hand to `append_as_leader`, or None when the transaction is open here already. Raises
        INVALID_PRODUCER_EPOCH for a stale epoch. `supports_epoch_bump` says Produce v12 or above."""
        if self.producers.is_open(producer_id, producer_epoch):
            return None
        now_ms = self._home.clock.now_ms()
        return self.producers.verify(producer_id, base_sequence, producer_epoch, supports_epoch_bump, now_ms)

    def producer_statuses(self) -> list[ProducerStatus]:
        """All producers with state, for DescribeProducers."""
        return [
            ProducerStatus(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
            for entry in self.producers.entries.values()
        ]

    def take_snapshot(self) -> str | None:
        """Write the producer state at the log's end, unless that was done. Answers the file's path. Raises OSError."""
        offset = self.producers.next_offset
        if offset <= self.producers.snapshot_offset:
            return None
        path = f"{self.directory}/{names.file_name(offset, names.SNAPSHOT)}"
        entries: list[ProducerEntry] = list(self.producers.entries.values())
        producer_snapshot.write(path, entries, sync=False)
        self.producers.snapshot_offset = offset
        return path

    # --- read

    def read(
        self,
        fetch_offset: int,
        max_bytes: int,
        *,
        isolation_level: int = 0,
        at_least_one: bool = True,
        copy_bytes: int = ALL_BYTES,
    ) -> Fetched:
        """Stored batches from the one that holds `fetch_offset`. Raises OFFSET_OUT_OF_RANGE outside
        [log_start_offset, log_end_offset]. With `at_least_one` the first batch comes whole even if over `max_bytes`.
        More than `copy_bytes` are not read but shown as FileRecords, whoever sends them reads them."""
        self._require_online()
        try:
            return lookup.read(self, fetch_offset, max_bytes, isolation_level, at_least_one, copy_bytes)
        except OSError as err:
            raise self.fail(err) from err

    def offset_for_timestamp(self, timestamp_ms: int, isolation_level: int = 0) -> FoundOffset:
        """First record at or after `timestamp_ms`; nothing found below the bound of the isolation level: all -1."""
        self._require_online()
        try:
            return lookup.offset_for_timestamp(self, timestamp_ms, isolation_level)
        except OSError as err:
            raise self.fail(err) from err

    def earliest(self) -> FoundOffset:
        """The log start offset (ListOffsets -2; also -4, earliest local)."""
        self._require_online()
        entries = self.epochs.entries
        if not entries:  # nothing was ever appended: the leader's epoch begins here
            return FoundOffset(-1, self.log_start_offset, self.leader_epoch)
        known = entries[0][1] <= self.log_start_offset
        return FoundOffset(-1, self.log_start_offset, entries[0][0] if known else -1)

    def latest(self, isolation_level: int = 0) -> FoundOffset:
        """High watermark or last stable offset (ListOffsets -1)."""
        self._require_online()
        return FoundOffset(-1, self.last_stable_offset if isolation_level else self.log_end_offset, self.leader_epoch)

    def max_timestamp(self, isolation_level: int = 0) -> FoundOffset:
        """The record with the highest timestamp (ListOffsets -3)."""
        self._require_online()
        try:
            return lookup.max_timestamp(self, isolation_level)
        except OSError as err:
            raise self.fail(err) from err

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(leader_epoch, end_offset) as OffsetForLeaderEpoch answers; (-1, -1) when unknown."""
        self._require_online()
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.log_end_offset
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def batches(self, start_offset: int | None = None) -> Iterator[tuple[Any, Batch]]:
        """(buffer, Batch) of all stored batches from `start_offset` (default: log start), for replay; the batch's
        `position` is in the file, the buffer holds it alone, from 0."""
        offset = self.log_start_offset if start_offset is None else max(start_offset, self.log_start_offset)
        return lookup.batches(self, offset)

    def segment_at(self, offset: int) -> int:
        """The number of the segment that holds `offset`, -1 below the first."""
        segments = self.segments
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return bisect_right(segments, offset, key=_base_offset) - 1

    def lso_position(self) -> tuple[int, int]:
        """(base offset of the segment, position) of the batch at the last stable offset, which is below the log's
        end."""
        offset = self.last_stable_offset
        known = self._lso_position
        if known is None or known[0] != offset:
            segment = self.segments[max(self.segment_at(offset), 0)]
            found = segment.find(offset)
            position = found[0] if found is not None else segment.size_bytes
            known = self._lso_position = (offset, segment.base_offset, position)
        return known[1], known[2]

    def content_changed(self) -> None:
        """Positions that were looked up are void (compaction, truncation)."""
        self._lso_position = None

    # --- change

    def delete_records_before(self, offset: int) -> int:
        """DeleteRecords: raise the log start offset (-1: to the high watermark); answers the new one. Raises
        OFFSET_OUT_OF_RANGE, POLICY_VIOLATION as Kafka does."""
        self._require_online()
        if self.config.compact and not self.config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {self.name} can not be deleted due to the configured policy",
            )
        target = self.log_end_offset if offset == -1 else offset
        if not 0 <= target <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The specified offset {offset} is not within [0, {self.log_end_offset}] of {self.name}",
            )
        if self.raise_start(target):
            self._home.start_offset_raised(self)
            logger.info("%s: log start offset is %d after DeleteRecords", self.name, target)
        return self.log_start_offset

    def raise_start(self, offset: int) -> bool:
        """Move the log start offset up; False when it is there already. Files go at the next retention."""
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.next_offset = max(self.producers.next_offset, offset)
        self._lso_position = None
        self._wake()
        return True

    def release_before(self, offset: int, now_ms: int) -> int:
        """Raise the log start offset and remove the closed segments below it now; answers how many. Raises OSError."""
        from kafka_shim.storage.retention import delete_old_segments

        self.raise_start(offset)
        return delete_old_segments(self, self._home, now_ms)

    def flush(self) -> None:
        """fsync everything up to the end, here and now (clean stop, the metadata log). Blocks."""
        self._require_online()
        future = self.request_flush()
        try:
            future.result()
        except OSError as err:
            raise self.fail(err) from err

    def configure(self, config: TopicConfig) -> None:
        """The topic's options changed."""
        self.config = config
        self.want_flush()

    def want_flush(self) -> None:
        """Be looked at when `flush.ms` is over, where it is set and something is unflushed."""
        if self.config.flush_ms < NEVER and self.unflushed_since_ms >= 0:
            self._home.wish_flush(self)

    def request_flush(self) -> Future[None]:
        """Have everything up to the end synced by the flusher; the future is done when it is on the disk."""
        end_offset = self.log_end_offset
        self.unflushed_since_ms = -1
        self._home.flush_wanted.discard(self)
        first = max(self.segment_at(self.recovery_point), 0)
        paths = [segment.path(names.LOG) for segment in self.segments[first:]]
        return self._home.flusher.sync(paths, lambda: self._flushed_to(end_offset), self._sync_failed)

    def _flushed_to(self, offset: int) -> None:
        # In the flusher's thread; the order of its queue keeps the points ascending.
        self.recovery_point = max(self.recovery_point, offset)

    def _sync_failed(self, err: OSError) -> None:
        # In the flusher's thread; the next use takes the partition offline. Out of descriptors, nothing was synced and
        # nothing lost: whoever waits hears of it, and the next fsync starts at the same recovery point.
        if err.errno not in OUT_OF_RESOURCES:
            self.sync_error = err

    # --- waiting readers

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback()` after every append, marker, raised start offset and deletion until unsubscribed."""
        if self._readers is None:
            self._readers = [callback]
        else:
            self._readers.append(callback)

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        """The opposite of `subscribe`; not subscribed is no error."""
        if self._readers is not None and callback in self._readers:
            self._readers.remove(callback)
            if not self._readers:
                self._readers = None

    def _wake(self) -> None:
        if self._readers is not None:
            for callback in tuple(self._readers):
                callback()

    # --- life

    def _require_online(self) -> None:
        if self.sync_error is not None and not self.is_offline:
            self.fail(self.sync_error, torn=True)
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is offline after an I/O error")
        if self.is_closed:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self.name} was deleted or closed")

    def fail(self, err: OSError, *, torn: bool = False) -> KafkaError:
        """Take the partition offline after an I/O error; its files stay as they are, until `reopening` or the next
        start recovers them. Being out of descriptors, memory or space is no damage: then only this request fails,
        unless the files are `torn` between two states."""
        if err.errno in REFUSALS and not torn:
            logger.warning("%s: %s", self.name, err)
        elif not self.is_offline:
            self.is_offline = True
            logger.error("%s is offline, to be opened again soon: %s (%s)", self.name, err, self.directory)
            self._home.went_offline(self)
            for segment in self.segments:
                segment.abandon()
            self._wake()
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {err}")

    def came_back(self) -> None:
        """`reopening` has loaded the partition anew."""
        self.is_offline = False
        self.sync_error = None
        self._lso_position = None
        self.unflushed_since_ms = self._home.clock.now_ms()
        self.want_flush()
        self._wake()

    def moved(self, directory: str) -> None:
        """The directory has been renamed by the caller."""
        self.directory = directory
        self.epochs.moved(directory)
        for segment in self.segments:
            segment.moved(directory)

    def retire(self) -> None:
        """The partition is deleted: store nothing more, give everything back, wake the readers."""
        self.is_closed = True
        self._home.flush_wanted.discard(self)
        for segment in self.segments:
            segment.abandon()
        self._wake()

    def close(self) -> list[str]:
        """Clean stop: store indexes and snapshot. Answers the files that are not known to be on the disk; when the
        caller has synced them it calls `closed`. Raises OSError."""
        if self.is_closed or self.is_offline:
            return []
        snapshot = self.take_snapshot()
        first = max(self.segment_at(self.recovery_point), 0)
        for segment in self.segments:
            segment.close()
        self.is_closed = True
        self._wake()
        if self.log_end_offset <= self.recovery_point:
            return []
        paths = [path for segment in self.segments[first:] for path in segment.sync_paths()]
        return [*paths, snapshot] if snapshot else paths

    def closed(self) -> None:
        """What `close` answered is on the disk."""
        if not self.is_offline:
            self.recovery_point = self.log_end_offset


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _writable(records: Buffer, size_bytes: int) -> Buffer:
    """The batch alone, in memory that may be stamped; a copy when the request's bytes are read-only."""
    view = memoryview(records)
    if view.readonly:
        return bytearray(view[:size_bytes])
    return view if len(view) == size_bytes else view[:size_bytes]

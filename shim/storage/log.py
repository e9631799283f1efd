"""The log of one partition: append, read, look up offsets, truncate (Kafka: UnifiedLog).

`append_checked` shows all steps of an append in order."""

from __future__ import annotations

import logging

from kafka_shim.cext.batch import stamp
from kafka_shim.cext.log_base import Appended
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage import lookup, validation
from kafka_shim.storage.appends import Appends
from kafka_shim.storage.plain_log import LOG_APPEND_TIME
from kafka_shim.storage.results import Buffer, Fetched, FoundOffset, ProducerStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kafka_shim.cext.batch import Batch
    from kafka_shim.cext.log_base import Verification
    from kafka_shim.storage.services import LogStart

logger = logging.getLogger(__name__)

ALL_BYTES = 0x7FFFFFFFFFFFFFFF


class PartitionLog(Appends):
    """One partition: segments, indexes, producer state. `Logs` owns and closes it. Event-loop thread only.

    Offsets named ``end`` or ``next`` are exclusive. There are no followers, so high_watermark == log_end_offset.
    """

    __slots__ = ()

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset (exclusive): the start of the oldest open transaction, or else the high watermark
        (B14)."""
        first_open = self.producers.first_open_offset
        return self.log_end_offset if first_open < 0 else max(first_open, self.log_start_offset)

    # --- append

    def append_checked(
        self,
        records: Buffer,
        *,
        now_ms: int,
        version: int,
        verification: Verification | None = None,
        checked: validation.Checked | None = None,
    ) -> Appended:
        """Append one batch from a client, whole or not at all, in all steps; `append_each` takes those about which
        nothing is to be decided. `records` is the field of the Produce request. If it is writable, it is stamped in
        place, so the caller must not reuse it before the response is sent. `version` is the Produce API version.
        `checked` is what a thread has found of it; it holds by the options that it was checked by.

        Raises KafkaError with the error codes of A3-A10 and B9. A `RecordsError` lists the invalid records."""
        config = self.config
        self._require_online()
        if self._plain_of is not config:
            self.set_plain(config)
        if checked is not None and checked.config is config:
            if checked.error is not None:
                raise checked.error
            batch, max_timestamp = checked.batch, checked.max_timestamp
            if checked.stored is not None:
                records = checked.stored
        else:
            batch, max_timestamp = validation.check(records, self.name, version, now_ms, config)
            if config.compression_type != "producer":
                codec = validation.target_codec(batch, config)
                if codec != batch.compression:
                    records, batch = validation.compress_anew(records, batch, codec, self.name, config)
        producer_id, size_bytes = batch.producer_id, batch.size_bytes
        if producer_id >= 0:
            entry = self.producers.entries.get(producer_id)
            if entry is not None and (cached := entry.duplicate_of(batch)) is not None:
                # The original batch may still be waiting for its fsync.
                must_flush = cached[3] + 1 - self.recovery_point >= config.flush_messages
                flushed = self.request_flush() if must_flush else None
                return Appended(cached[2], cached[3], cached[4], self.log_start_offset, duplicate=True, flushed=flushed)
            self._check_producer(batch, verification, client=True)
        append_time_ms = -1
        if config.message_timestamp_type == LOG_APPEND_TIME:
            append_time_ms = max_timestamp = now_ms
        stamped = validation.writable(records, size_bytes)
        base_offset = self.log_end_offset
        stamp(stamped, 0, base_offset, self.leader_epoch, append_time_ms, max_timestamp)
        return self._put_client(stamped, batch, base_offset, max_timestamp, append_time_ms, now_ms)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        transaction_version: int,
        now_ms: int,
    ) -> Appended:
        """Append a transaction marker. Raises INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED (rules in
        B11)."""
        marker, batch = self._services.marker_of(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
        appended = self.mark_plain(marker, batch, transaction_version) or self._mark(marker, batch, transaction_version)
        for topic, hook in self._services.on_marker:
            if topic is None or topic == self.topic:
                hook(self, producer_id, producer_epoch, commit, appended.base_offset)
        return appended

    # --- transactions

    def producer_statuses(self) -> Iterator[ProducerStatus]:
        """Yield the state of every producer, for DescribeProducers."""
        return self.producers.statuses()

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
        """Read up to `max_bytes` of stored batches, starting with the one that contains `fetch_offset`; the last one
        may be cut. With `at_least_one` the first batch is returned whole even if it exceeds `max_bytes`; without,
        nothing is returned then. If the result exceeds `copy_bytes`, it is returned as FileRecords, which the sender
        reads later. Raises OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset]."""
        self._require_online()
        try:
            return lookup.read(self, fetch_offset, max_bytes, isolation_level, at_least_one, copy_bytes)
        except OSError as err:
            raise self.fail(err) from err

    def read_times(self, timestamp_ms: int) -> Iterator[None]:
        """Read, one in a step, what a look-up by time needs of the segments: after a start no file was read. A negative
        `timestamp_ms` means all."""
        return lookup.read_times(self, timestamp_ms)

    def offset_for_timestamp(self, timestamp_ms: int, isolation_level: int = 0) -> FoundOffset:
        """Return the first record with a timestamp >= `timestamp_ms`; all fields are -1 if there is none below the high
        watermark or, for read_committed, the last stable offset."""
        self._require_online()
        try:
            return lookup.offset_for_timestamp(self, timestamp_ms, isolation_level)
        except OSError as err:
            raise self.fail(err) from err

    def earliest(self) -> FoundOffset:
        """Return the log start offset (ListOffsets timestamp -2, and -4, earliest local)."""
        self._require_online()
        entries = self.epochs.entries
        if not entries:  # nothing was ever appended, so the current leader epoch begins here
            return FoundOffset(-1, self.log_start_offset, self.leader_epoch)
        known = entries[0][1] <= self.log_start_offset
        return FoundOffset(-1, self.log_start_offset, entries[0][0] if known else -1)

    def latest(self, isolation_level: int = 0) -> FoundOffset:
        """Return the high watermark or, for read_committed, the last stable offset (ListOffsets timestamp -1)."""
        self._require_online()
        return FoundOffset(-1, self.last_stable_offset if isolation_level else self.log_end_offset, self.leader_epoch)

    def max_timestamp(self, isolation_level: int = 0) -> FoundOffset:
        """Return the record with the highest timestamp (ListOffsets timestamp -3)."""
        self._require_online()
        try:
            return lookup.max_timestamp(self, isolation_level)
        except OSError as err:
            raise self.fail(err) from err

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return (leader_epoch, end_offset) for OffsetForLeaderEpoch, or (-1, -1) if the epoch is unknown."""
        self._require_online()
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset, self.leader_epoch)

    def batches(self, start_offset: int | None = None) -> Iterator[tuple[Any, Batch]]:
        """Yield (buffer, Batch) for all stored batches from `start_offset` (default: the log start offset), for replay.
        The buffer contains only this batch; `Batch.position` is its position in the .log file."""
        offset = self.log_start_offset if start_offset is None else max(start_offset, self.log_start_offset)
        return lookup.batches(self, offset)

    def lso_position(self) -> tuple[int, int]:
        """Return (base offset of the segment, position) of the batch at the last stable offset. The caller makes sure
        that the last stable offset is below the log end offset."""
        offset = self.last_stable_offset
        known = self._lso_position
        if known is None or known[0] != offset:
            segment = self.segments[max(self.segment_at(offset), 0)]
            found = segment.find(offset)
            position = found[0] if found is not None else segment.size_bytes
            known = self._lso_position = (offset, segment.base_offset, position)
        return known[1], known[2]

    # --- change

    def delete_records_before(self, offset: int) -> int:
        """Raise the log start offset for DeleteRecords (-1: to the high watermark) and return it. Raises
        OFFSET_OUT_OF_RANGE or POLICY_VIOLATION as Kafka does."""
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
        before = self.log_start_offset, self.epochs.entries
        try:
            if self.raise_start(target):
                self._services.start_offset_raised(self, before)
        except (OSError, KafkaError, MemoryError) as err:
            self.take_back_start(before)
            if isinstance(err, OSError):
                raise self.fail(err) from err
            raise
        return self.log_start_offset

    def raise_start(self, offset: int) -> bool:
        """Raise the log start offset. Returns False if it is already at or above `offset`. The next retention run
        deletes the segments below it."""
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.next_offset = max(self.producers.next_offset, offset)
        self._lso_position = None
        self._wake()
        return True

    def take_back_start(self, before: LogStart) -> None:
        """Undo what DeleteRecords raised. Not stored, so not done: a retry must not succeed on what memory alone
        knows."""
        self.log_start_offset, self.epochs.entries = before

    def release_before(self, offset: int, now_ms: int) -> int:
        """Raise the log start offset and delete the segments below it now. Returns how many. Raises OSError."""
        from kafka_shim.storage.retention import delete_old_segments

        self.raise_start(offset)
        return delete_old_segments(self, self._services, now_ms)

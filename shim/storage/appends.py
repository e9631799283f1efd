"""The appends that are not plain: their writes, and those of what the broker itself appends. `log` has the recipe of a
client's batch.

The functions with handlers of exceptions are short: without memory CPython does not leave a handler that is far from
the beginning of its function, and goes round for ever, with the GIL."""

from __future__ import annotations

import logging

from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.batch import scan, stamp
from kafka_shim.cext.log_base import Appended
from kafka_shim.storage import validation
from kafka_shim.storage.abort_markers import add_aborted, take_back_aborted
from kafka_shim.storage.plain_log import LOG_APPEND_TIME, PlainLog
from kafka_shim.storage.producers import ProducerRefusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.cext.batch import Batch
    from kafka_shim.cext.log_base import Verification
    from kafka_shim.storage.producers import Marker
    from kafka_shim.storage.results import Buffer
    from kafka_shim.storage.txn_index import Aborted

logger = logging.getLogger("kafka_shim.storage.log")


class Appends(PlainLog):
    """The base of `PartitionLog`. Event-loop thread only."""

    __slots__ = ()

    def append_batch(
        self,
        batch: bytearray,
        *,
        now_ms: int,
        verification: Verification | None = None,
        is_limited: bool = True,
    ) -> Appended:
        """Append one batch that the broker built itself (group offsets and members, transaction state, metadata). The
        batch is stamped in place. `is_limited`: `max.message.bytes` holds for it, as for those of coordinators; else
        MESSAGE_TOO_LARGE.

        If the batch has a producer id, its epoch is checked. Sequence numbers are not checked because the batch has
        none. The caller must make sure that the partition is in the transaction."""
        return self.append_own(batch, now_ms, is_limited) or self._put(batch, now_ms, verification, is_limited)

    def _put(self, batch: bytearray, now_ms: int, verification: Verification | None, is_limited: bool) -> Appended:
        """As `append_batch`, whatever the batch is."""
        config = self.config
        self._require_online()
        if self._plain_of is not config:
            self.set_plain(config)
        header = scan(batch, check_crc=False)
        if is_limited and header.size_bytes > config.max_message_bytes:
            raise validation.too_large(self.name, header.size_bytes, config)
        if header.producer_id >= 0:
            self._check_producer(header, verification, client=False)
        base_offset = self.log_end_offset
        stamp(batch, 0, base_offset, self.leader_epoch)
        return self._put_own(batch, header, base_offset, now_ms)

    def _put_own(self, stamped: Buffer, batch: Batch, base_offset: int, now_ms: int) -> Appended:
        try:
            return self._put_stamped(stamped, batch, base_offset, batch.max_timestamp, -1, now_ms)
        except Exception as err:
            self._take_back(base_offset, err)

    def _put_client(
        self, stamped: Buffer, batch: Batch, base_offset: int, max_timestamp_ms: int, append_time_ms: int, now_ms: int
    ) -> Appended:
        try:
            return self._put_stamped(stamped, batch, base_offset, max_timestamp_ms, append_time_ms, now_ms)
        except MemoryError as err:
            raise self._refuse_half_done(base_offset) from err

    def _put_stamped(
        self, stamped: Buffer, batch: Batch, base_offset: int, max_timestamp_ms: int, append_time_ms: int, now_ms: int
    ) -> Appended:
        last_offset = base_offset + batch.last_offset_delta
        self._write(stamped, batch.size_bytes, base_offset, last_offset, max_timestamp_ms, now_ms)
        if batch.producer_id >= 0:
            self.producers.apply_data(batch, base_offset, last_offset, max_timestamp_ms)
        return self._advance(base_offset, last_offset, append_time_ms, batch.size_bytes, now_ms)

    def _mark(self, marker: Marker, batch: bytearray, transaction_version: int) -> Appended:
        """Append a marker, whatever it is."""
        self._require_online()
        if marker.producer_id >= 0:  # Kafka keeps no state of a lower id, and refuses it nothing
            self._check_marker(marker, transaction_version)
        offset = self.log_end_offset
        append_time_ms = -1
        if self.config.message_timestamp_type == LOG_APPEND_TIME:
            # The other partitions of the transaction get the same batch.
            batch, append_time_ms = bytearray(batch), marker.timestamp_ms
        stamp(batch, 0, offset, self.leader_epoch, append_time_ms)
        aborted = None if marker.commit else self.producers.aborted_by(marker.producer_id, offset)
        return self._put_marker(marker, batch, offset, aborted)

    def _check_marker(self, marker: Marker, transaction_version: int) -> None:
        try:
            self.producers.check_marker(marker, transaction_version)
        except ProducerRefusal as err:
            logger.info("%s", err)
            raise

    def _put_marker(self, marker: Marker, batch: bytearray, offset: int, aborted: Aborted | None) -> Appended:
        now_ms, size_bytes = marker.timestamp_ms, len(batch)
        try:
            if aborted is None:
                self._write(batch, size_bytes, offset, offset, now_ms, now_ms)
            else:
                self._write_indexed(batch, offset, now_ms, aborted)
            if marker.producer_id >= 0:
                self.producers.apply_marker(marker, offset)
            return self._advance(offset, offset, -1, size_bytes, now_ms)
        except Exception as err:
            self._take_back(offset, err)

    def _write_indexed(self, batch: bytearray, offset: int, now_ms: int, aborted: Aborted) -> None:
        segment = add_aborted(self, aborted, len(batch), now_ms)
        try:
            self._write(batch, len(batch), offset, offset, now_ms, now_ms)
        except BaseException:
            take_back_aborted(self, segment)
            raise

    def _check_producer(self, batch: Batch, verification: Verification | None, *, client: bool) -> None:
        must_verify = client and self._services.config.transaction_partition_verification_enable
        try:
            self.producers.check_data(batch, verification, client=client, must_verify=must_verify)
        except ProducerRefusal as err:
            logger.info("%s", err)
            raise

    def _write(
        self, batch: Buffer, size_bytes: int, base_offset: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> None:
        """Write the stamped batch to the active segment, and roll first if the segment is full. After an I/O error the
        batch is not in the log; `fail` decides whether the partition goes offline."""
        if size_bytes > self.config.segment_bytes:
            raise validation.above_segment(self.name, size_bytes, self.config)
        try:
            self._put_in_segment(batch, size_bytes, base_offset, last_offset, max_timestamp_ms, now_ms)
        except OSError as err:
            raise self.fail(err) from err
        if self._services.faults.armed:
            self._reach_after_write()

    def _reach_after_write(self) -> None:
        try:
            self._services.faults.reach("log.after_write", topic=self.topic, partition=self.partition)
        except Exception as err:
            self._fail_written(err)

    def _put_in_segment(
        self, batch: Buffer, size_bytes: int, base_offset: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> None:
        config = self.config
        if self._services.faults.armed:
            self._services.faults.reach("log.before_write", topic=self.topic, partition=self.partition)
        segment = self.segments[-1]
        if self.epochs.latest != self.leader_epoch or not segment.append_plain(
            cext_segment.append, batch, size_bytes, last_offset, max_timestamp_ms, config
        ):
            if segment.is_full(size_bytes, max_timestamp_ms, last_offset, config, now_ms):
                segment = self.roll(now_ms)
            if self.epochs.latest != self.leader_epoch:
                self.epochs.assign(self.leader_epoch, base_offset)
            segment.append((batch,), size_bytes, last_offset, max_timestamp_ms, config.index_interval_bytes)

    def _advance(
        self, base_offset: int, last_offset: int, append_time_ms: int, size_bytes: int, now_ms: int
    ) -> Appended:
        """Complete an append: advance the log end offset, wake waiting readers, request an fsync if the configuration
        requires one."""
        end_offset = last_offset + 1
        self.log_end_offset = self.producers.next_offset = end_offset
        self.appended_bytes += size_bytes
        self.appended_records += end_offset - base_offset
        if self._readers is not None:
            self._wake()
        if self.unflushed_since_ms < 0:
            self.unflushed_since_ms = now_ms
            try:
                self.want_flush()
            except MemoryError:
                self._services.has_lost_wishes = True  # what is stored is stored
        flushed = None
        if end_offset - self.recovery_point >= self.config.flush_messages:
            flushed = self.request_flush()
        if self._services.faults.armed:
            self._reach_after_append()
        return Appended(base_offset, last_offset, append_time_ms, self.log_start_offset, False, size_bytes, flushed)

    def _reach_after_append(self) -> None:
        self._services.faults.reach("log.after_append", topic=self.topic, partition=self.partition)

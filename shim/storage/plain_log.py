"""The append of batches and markers about which there is nothing to decide, which are nearly all: one pass in
`cext.log_base`. `log` and `appends` have the rules for the others."""

from __future__ import annotations

import errno
from contextlib import suppress

from kafka_shim.cext import segment as cext_segment
from kafka_shim.storage import producers
from kafka_shim.storage.local_log import NEVER, LocalLog
from kafka_shim.storage.open_files import out_of_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from kafka_shim.cext.log_base import Appended
    from kafka_shim.cext.many_logs import PartitionBatch, Produced
    from kafka_shim.config import TopicConfig
    from kafka_shim.errors import KafkaError
    from kafka_shim.storage.producers import Marker

LOG_APPEND_TIME = "LogAppendTime"
# Made here: where it is needed no memory is left for it.
_NO_MEMORY = out_of_memory()


class PlainLog(LocalLog):
    """The base of `Appends`. Event-loop thread only."""

    __slots__ = ()

    def set_plain(self, config: TopicConfig) -> None:
        """Note what the appends below ask of the configuration."""
        self._is_log_append_time = config.message_timestamp_type == LOG_APPEND_TIME
        self._is_plain = config.compression_type == "producer" and not self._is_log_append_time
        self._waits_for_disk = config.flush_messages < NEVER
        self._needs_keys, self._most_message_bytes = config.compact, config.max_message_bytes
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._plain_of = config

    def _refuse_half_done(self, base_offset: int) -> KafkaError:
        """Take the partition offline after an append that found no memory on the way, and return the error to raise.
        What it has written and counted is not known: the file is cut at `base_offset`, and the reopening reads the
        state again."""
        self.log_end_offset = base_offset
        refusal = self.fail(_NO_MEMORY, torn=True)
        self._cut_refused()
        return refusal

    def _cut_refused(self) -> None:
        """Cut off what was refused: a stop or a kill may come before the reopening, which else does it."""
        with suppress(OSError, MemoryError):
            self.segments[-1].cut_refused(self.log_end_offset)

    def _take_back(self, base_offset: int, error: Exception) -> NoReturn:
        """Raise the error of an append of the broker's own. If memory ended in it, or it was complete as a fault point
        refused it (`log.after_append`), the batch goes: its coordinator does not know of it."""
        if isinstance(error, MemoryError):
            raise self._refuse_half_done(base_offset) from error
        if self.log_end_offset > base_offset:
            self.log_end_offset = base_offset
            self._fail_written(error)
        raise error

    def _fail_written(self, error: Exception) -> NoReturn:
        """Take the partition offline whose file has a batch that a fault point refused, and raise its error: the next
        batch would follow that one with its offsets."""
        reason = error if isinstance(error, OSError) else OSError(errno.EIO, str(error))
        refusal = self.fail(reason, torn=True)
        self._cut_refused()
        if reason is error:
            raise refusal from error
        raise error

    def not_appended(self, base_offset: int, error: OSError | MemoryError) -> KafkaError:
        """Take over the failure of an append at `base_offset`, and return the error to raise."""
        if isinstance(error, OSError):
            return self.fail(error)
        return self._refuse_half_done(base_offset)

    def append_own(self, batch: bytearray, now_ms: int, is_limited: bool) -> Appended | None:
        """As `append_batch`, or None if there is something to decide. Raises KAFKA_STORAGE_ERROR."""
        if self._services.faults.armed:
            return None
        base_offset = self.log_end_offset
        try:
            return self.put_own(cext_segment.append, batch, now_ms, is_limited, producers.CACHED_BATCHES)
        except (OSError, MemoryError) as err:
            raise self.not_appended(base_offset, err) from err

    def mark_plain(self, marker: Marker, batch: bytearray, transaction_version: int) -> Appended | None:
        """As `append_marker`, or None if there is something to decide. Raises KAFKA_STORAGE_ERROR."""
        if not marker.commit or transaction_version == producers.UNKNOWN_VERSION or self._services.faults.armed:
            return None
        offset = self.log_end_offset
        try:
            return self.commit_plain(
                cext_segment.append,
                batch,
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                transaction_version,
                marker.timestamp_ms,
            )
        except (OSError, MemoryError) as err:
            raise self.not_appended(offset, err) from err


def append_each(made: Produced, batches: list[PartitionBatch], now_ms: int) -> tuple[list[PartitionBatch], int]:
    """Append the batches of a Produce about which there is nothing to decide, and fill in their answers. Returns those
    that are not appended, of which some have an error now and the others are for `append_checked`, and the bytes
    appended. No fault may be armed."""
    return made.append(batches, cext_segment.append, now_ms, producers.CACHED_BATCHES)

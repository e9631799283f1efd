"""The periodic work on all partitions: retention, `flush.ms`, checkpoints, producer expiry, reopening (Kafka:
LogManager.startupWithConfigOverrides)."""

from __future__ import annotations

import logging

from kafka_shim.errors import DisconnectError, KafkaError
from kafka_shim.scheduler import Scheduler, Slice
from kafka_shim.storage import reopening, retention
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.partitions import SLICE
from kafka_shim.storage.services import nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.config import BrokerConfig
    from kafka_shim.storage.leaving import Leaving
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs
    from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
    from kafka_shim.storage.partitions import Partitions
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)

FLUSH_CHECK_MS = 1000
RETENTION = "slices of retention"
EXPIRY = "slices of expiry"
# Segments that retention passes to the flusher thread at once, and how long it waits before it looks whether they have
# their new names.
SEGMENTS_OF_SLICE = 10
PAUSE_MS = 2


class ScheduledTasks:
    """The timers and what they do. Owned by `Logs`. Event-loop thread only."""

    def __init__(
        self, logs: Logs, partitions: Partitions, services: LogServices, checkpoints: OffsetCheckpoints
    ) -> None:
        self._logs = logs
        self._partitions = partitions
        self._services = services
        self._checkpoints = checkpoints
        self._clock = services.clock
        self.scheduler = Scheduler(services.clock)

    def start(self, config: BrokerConfig) -> None:
        """Start the timers. With the real clock it needs a running event loop."""
        every, first_ms = self.scheduler.every, config.log_initial_task_delay_ms
        every("retention", config.log_retention_check_interval_ms, self._retain_in_slices, first_ms)
        if config.log_flush_offset_checkpoint_interval_ms:
            every("checkpoint", config.log_flush_offset_checkpoint_interval_ms, self._checkpoints.write_aside, first_ms)
        else:  # once, as in Kafka
            self.scheduler.after("checkpoint", first_ms, self._checkpoints.write_aside)
        every("expiry", config.producer_id_expiration_check_interval_ms, self._expire_in_slices)
        services = self._services
        services.flush_wished = self._look_at_flushes
        if services.flush_wanted:
            self._look_at_flushes()
        services.reopen_wanted = self._reopen_soon
        every("look for lost ones", reopening.LONGEST_PAUSE_MS, self._find_lost)
        self._reopen_any()

    def stop(self) -> None:
        """Cancel all timers."""
        self.scheduler.stop()
        self._services.flush_wished = self._services.reopen_wanted = nothing

    # --- partitions that are offline

    def reopen_offline(self) -> bool:
        """Reload the partitions that are offline or could not be loaded. Returns True if none is left."""
        not_loaded = self._partitions.not_loaded
        for partition in [one for one, err in not_loaded.items() if err.errno not in OUT_OF_RESOURCES]:
            del not_loaded[partition]
            self._logs.find(*partition)
        for log in list(self._services.offline):
            try:
                reopening.reopen(log, self._services)
            except (OSError, ValueError) as err:
                logger.warning("%s stays offline: %s", log.name, err)
        return not self._services.offline and not self._partitions.unloadable_count

    def _find_lost(self) -> None:
        """Have partitions looked at for which memory ended when their next look was set."""
        self._reopen_any()
        if self._services.has_lost_wishes:
            for log in self._logs.loaded():
                log.want_flush()
            self._services.has_lost_wishes = False

    def _reopen_any(self) -> None:
        """Have partitions reopened that are offline."""
        if self._services.offline or self._partitions.unloadable_count:
            self._reopen_soon()

    def _reopen_soon(self, pause_ms: int = reopening.FIRST_PAUSE_MS) -> None:
        """Try to reopen offline partitions after a pause. The pause doubles while a partition stays offline."""

        def look() -> None:
            # A partition that fails again meanwhile must not start again with the first, short pause.
            self._services.reopen_wanted = nothing
            is_done = False
            try:
                is_done = self.reopen_offline()
            finally:
                self._services.reopen_wanted = self._reopen_soon
                if not is_done:
                    self._reopen_soon(min(2 * pause_ms, reopening.LONGEST_PAUSE_MS))

        if not self.scheduler.is_scheduled("reopen"):
            self.scheduler.after("reopen", pause_ms, look)

    # --- flush.ms

    def _look_at_flushes(self) -> None:
        """Check `flush.ms` every second while a partition has data that is not on the disk."""

        def look() -> None:
            self.flush_due(self._clock.now_ms())
            if not self._services.flush_wanted:
                self.scheduler.cancel("flush")

        if not self.scheduler.is_scheduled("flush"):
            self.scheduler.every("flush", FLUSH_CHECK_MS, look)

    def flush_due(self, now_ms: int) -> int:
        """Request an fsync of the partitions whose `flush.ms` has passed. Returns how many."""
        wanted = self._services.flush_wanted
        due = [log for log in tuple(wanted) if log.is_flush_due(now_ms)]
        for log in due:
            log.request_flush()
        return len(due)

    # --- retention and producers

    def retain(self, now_ms: int) -> int:
        """Apply retention to all partitions. Returns the number of deleted segments."""
        return sum(self._retain_one(log, now_ms) for log in self._logs.all())

    def _retain_one(self, log: PartitionLog, now_ms: int) -> int:
        if not _has_old_segments(log):
            return 0
        try:
            return retention.delete_old_segments(log, self._services, now_ms)
        except OSError as err:
            log.fail(err)
            return 0
        except (KafkaError, DisconnectError) as err:
            _refused(log, err)
            return 0

    def _begin_to_delete(self, log: PartitionLog, now_ms: int) -> Leaving | None:
        if not _has_old_segments(log):
            return None
        try:
            return retention.begin_to_delete(log, self._services, now_ms, SEGMENTS_OF_SLICE)
        except OSError as err:
            log.fail(err)
            return None
        except (KafkaError, DisconnectError) as err:
            _refused(log, err)
            return None

    def _end(self, leaving: Leaving, log: PartitionLog) -> bool:
        """End a slice of retention. Returns False if it failed: what is left waits for the next round."""
        try:
            leaving.end()
        except OSError as err:
            log.fail(err)
            return False
        return True

    def _retain_in_slices(self) -> None:
        """Apply retention as `retain` does, but yield to the event loop after every slice of partitions and every
        SEGMENTS_OF_SLICE segments. A round that is under way goes on: a new one in its place would never reach the last
        of many partitions where the interval is short."""
        if not self.scheduler.is_scheduled(RETENTION):
            self.scheduler.in_slices(RETENTION, self._slices_of_retention(), PAUSE_MS)

    def _slices_of_retention(self) -> Iterator[None]:
        now_ms = self._clock.now_ms()
        part = Slice(self._clock, SLICE)
        for log in self._logs.all():
            while (leaving := self._begin_to_delete(log, now_ms)) is not None:
                yield
                while leaving.is_under_way:
                    yield
                part.begin()
                if not self._end(leaving, log):
                    break
            if part.is_over():
                yield
                part.begin()

    def expire_producers(self, now_ms: int) -> int:
        """Remove producers that were inactive for `producer.id.expiration.ms`. Returns how many."""
        expiration_ms = self._services.config.producer_id_expiration_ms
        return sum(log.producers.expire(now_ms, expiration_ms) for log in self._partitions.loaded.values())

    def _expire_in_slices(self) -> None:
        """As `expire_producers`, but yield to the event loop: a partition may know two hundred thousand producers. As
        with retention, a round that is under way goes on."""
        if not self.scheduler.is_scheduled(EXPIRY):
            self.scheduler.in_slices(EXPIRY, self._slices_of_expiry())

    def _slices_of_expiry(self) -> Iterator[None]:
        now_ms = self._clock.now_ms()
        expiration_ms = self._services.config.producer_id_expiration_ms
        part = Slice(self._clock, SLICE)
        for log in list(self._partitions.loaded.values()):
            for _ in log.producers.expire_in_slices(now_ms, expiration_ms):
                if part.is_over():
                    yield
                    part.begin()
            if part.is_over():
                yield
                part.begin()


def _refused(log: PartitionLog, error: KafkaError | DisconnectError) -> None:
    """A fault point made the roll fail: the other partitions have their retention even so."""
    logger.warning("retention of %s failed: %r", log.name, error)


def _has_old_segments(log: PartitionLog) -> bool:
    """Returns whether retention has anything to look at."""
    return not (log.is_closed or log.is_offline or (len(log.segments) == 1 and log.segments[0].size_bytes == 0))

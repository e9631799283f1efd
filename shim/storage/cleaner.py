"""The log cleaner: chooses the next compacted partition to clean and swaps in its new segments (Kafka:
LogCleanerManager, LocalLog)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from kafka_shim.cext.batch import BatchError
from kafka_shim.scheduler import Scheduler, Slice
from kafka_shim.storage import checkpoint, names
from kafka_shim.storage.candidates import Candidate, examine
from kafka_shim.storage.compaction import Cancelled, Group, Round
from kafka_shim.storage.leaving import remove_snapshot, retire_segment
from kafka_shim.storage.open_files import out_of_memory
from kafka_shim.storage.segments import Segment
from kafka_shim.storage.throttle import Throttle
from kafka_shim.threads import Thread
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)

# Partitions that are looked at in one slice.
SLICE = 500
LOOK = "look"
FINISH = "finish"
# How often it is checked that the cleaner looks for work at all.
WATCH_MS = 60_000
# The most memory for the keys of a round, whatever `log.cleaner.dedupe.buffer.size` says, as in Kafka.
MOST_MAP_BYTES = 0x7FFFFFFF
# A partition whose round failed is tried again after a pause, which doubles up to this limit.
LONGEST_PAUSE_MS = 3600 * 1000


class Cleaner:
    """Cleans one partition at a time in a thread, and looks for work every `log.cleaner.backoff.ms`. Owned by `Logs`.
    Event-loop thread only."""

    def __init__(self, logs: Logs, services: LogServices) -> None:
        self._logs = logs
        self._services = services
        self._scheduler: Scheduler | None = None
        self._thread: Thread | None = None
        self._throttle: Throttle | None = None
        self._stopping = False
        # Partitions with a corrupt log. They are not tried again until a restart.
        self._uncleanable: set[PartitionLog] = set()
        # Partitions whose last round failed -> (monotonic time in ms of the next attempt, pause in ms).
        self._pauses: dict[PartitionLog, tuple[int, int]] = {}
        # Partitions that move to another directory: they are not cleaned meanwhile.
        self.paused: set[PartitionLog] = set()
        # For metrics: rounds that were swapped in, the bytes that they read and wrote, those that failed.
        self.rounds = self.read_bytes = self.written_bytes = self.failures = 0
        # The partition of the round under way.
        self._cleaned: PartitionLog | None = None

    # --- running rounds

    def schedule(self) -> None:
        """Look for work every `log.cleaner.backoff.ms`. Needs a running event loop."""
        if self._services.config.log_cleaner_enable and not self._stopping:
            self._scheduler = Scheduler(self._services.clock)
            self._scheduler.every("watch", WATCH_MS, self._rest_again)
            self._rest()

    def _rest_again(self) -> None:
        assert self._scheduler is not None
        if not self._scheduler.is_scheduled("tick"):  # memory ended when it was set
            self._rest()

    def _rest(self) -> None:
        # The option may be changed while the broker runs. 0 means no rest.
        assert self._scheduler is not None
        self._scheduler.after("tick", max(self._services.config.log_cleaner_backoff_ms, 1), self._tick)

    def _tick(self) -> None:
        self._rest()  # first, so that no error ends it
        self._look()

    def stop(self) -> None:
        """Cancel the current round and wait for its thread."""
        self._stopping = True
        if self._scheduler is not None:
            self._scheduler.stop()
        if self._throttle is not None:
            self._throttle.stop()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _look(self) -> None:
        """Look for work unless that, or a round, is under way."""
        assert self._scheduler is not None
        if self._thread is None and self._cleaned is None and not self._scheduler.is_scheduled(LOOK):
            self._scheduler.in_slices(LOOK, self._look_in_slices())

    def _look_in_slices(self) -> Generator[None, None, None]:
        try:
            candidate = yield from self._choose_in_slices(self._services.clock.now_ms())
            if candidate is not None:
                self._start_round(candidate)
        except Exception:
            logger.exception("choosing a partition to compact failed")

    def _start_round(self, candidate: Candidate) -> None:
        """Start a thread that cleans the partition."""
        loop = asyncio.get_running_loop()
        clock = self._services.clock
        try:
            work = self.begin(candidate)

            def run() -> None:
                try:
                    error = _attempt(work)
                    with suppress(RuntimeError):  # the event loop is closed
                        loop.call_soon_threadsafe(self._done, work, error)
                finally:
                    clock.end_work()

            thread = Thread(target=run, name="kafka-shim-cleaner", daemon=True)
            clock.begin_work()
            try:
                thread.start()
            except BaseException:
                clock.end_work()
                raise
        except Exception as err:
            self._pause(candidate.log, err)
            return
        self._thread = thread
        self._cleaned = candidate.log

    @property
    def uncleanable_count(self) -> int:
        """How many partitions are not cleaned because their log is corrupt."""
        return sum(not log.is_closed for log in self._uncleanable)

    def is_cleaning(self, log: PartitionLog) -> bool:
        """Whether a round of this partition is under way."""
        return self._cleaned is log

    def _done(self, work: Round, error: Exception | None) -> None:
        self._thread = None
        if self._stopping:
            return
        assert self._scheduler is not None
        self._scheduler.in_slices(FINISH, self._finish_and_look(work, error))

    def _finish_and_look(self, work: Round, error: Exception | None) -> Generator[None, None, None]:
        try:
            yield from self._finish_in_slices(work, error)
        except Exception as err:
            self._pause(work.log, err)
        finally:
            self._cleaned = None
        # Look for more work at once, without the backoff.
        assert self._scheduler is not None
        self._scheduler.after("next", 0, self._look)

    def _pause(self, log: PartitionLog, err: Exception) -> None:
        """Exclude the partition for a pause that doubles with each failure, so that it does not delay other
        partitions."""
        self.failures += 1
        _, pause_ms = self._pauses.get(log, (0, 0))
        pause_ms = min(max(2 * pause_ms, self._services.config.log_cleaner_backoff_ms, 1000), LONGEST_PAUSE_MS)
        self._pauses = {other: pause for other, pause in self._pauses.items() if not other.is_closed}
        self._pauses[log] = self._services.clock.monotonic_ms() + pause_ms, pause_ms
        # One without a traceback comes from a round, whose thread has logged it.
        trace = None if isinstance(err, OSError) or err.__traceback__ is None else err
        logger.warning(
            "%s: compaction failed and is tried again in %d s: %s", log.name, pause_ms // 1000, err, exc_info=trace
        )

    def clean_now(self, log: PartitionLog) -> Round:
        """Run one whole round in this thread, due or not: for tests. Raises the errors of
        `Round.run`."""
        work = self.begin(examine(log, self._checkpoint_of(log), self._services.clock.now_ms()))
        error = _attempt(work)
        self.finish(work, error)
        if error is not None:
            raise error
        return work

    # --- choice

    def choose(self, now_ms: int) -> Candidate | None:
        """Return the dirtiest partition that is due, or None: for tests. A partition that cannot be examined is
        paused."""
        return at_once(self._choose_in_slices(now_ms))

    def _choose_in_slices(self, now_ms: int) -> Generator[None, None, Candidate | None]:
        best: Candidate | None = None
        part = Slice(self._services.clock, SLICE)
        is_stale = False
        for log in self._logs.loaded():
            if part.is_over():
                yield
                part.begin()
                is_stale = True
            # Only closed segments are cleaned, so a log needs at least two.
            if len(log.segments) > 1 and log.config.compact:
                candidate = self._examined(log, now_ms)
                if candidate is not None and (best is None or candidate.ratio > best.ratio):
                    best = candidate
        # Between two slices it may have changed.
        return self._examined(best.log, now_ms) if is_stale and best is not None else best

    def _examined(self, log: PartitionLog, now_ms: int) -> Candidate | None:
        """Return the partition if it can be cleaned and is due."""
        if log in self._uncleanable or log in self.paused or log.is_closed or log.is_offline:
            return None
        if self._pauses and self._services.clock.monotonic_ms() < self._pauses.get(log, (0, 0))[0]:
            return None
        try:
            candidate = examine(log, self._checkpoint_of(log), now_ms)
        except Exception as err:
            self._pause(log, err)
            return None
        return candidate if candidate.is_due else None

    def _checkpoint_of(self, log: PartitionLog) -> int | None:
        return self._logs.dir_of(log).cleaner_offsets.get((log.topic, log.partition))

    def begin(self, candidate: Candidate) -> Round:
        """Create the round of a candidate, to be run in a thread."""
        config = self._services.config
        self._throttle = Throttle(config.log_cleaner_io_max_bytes_per_second, self._services.clock)
        log = candidate.log
        is_on_disk = log.recovery_point >= candidate.uncleanable_offset
        return Round(
            log,
            candidate.first_dirty_offset,
            candidate.uncleanable_offset,
            flushed=None if is_on_disk else log.request_flush(is_awaited=False),
            now_ms=self._services.clock.now_ms(),
            map_bytes=min(config.log_cleaner_dedupe_buffer_size, MOST_MAP_BYTES),
            # Kafka allows every value. With 1.0 and more no slot stays free, and a search would not end; with 0 and
            # less the map takes no key.
            load_factor=min(max(0.01, config.log_cleaner_io_buffer_load_factor), 0.99),  # of NaN the least, as in Java
            throttle=self._throttle,
            is_cancelled=lambda: self._stopping or log.is_closed or log.is_offline or log in self.paused,
        )

    def finish(self, work: Round, error: Exception | None) -> None:
        """Swap in the new segments of a round and write the cleaner checkpoint. After an error, remove the new
        segments."""
        at_once(self._finish_in_slices(work, error))

    def _finish_in_slices(self, work: Round, error: Exception | None) -> Generator[None, None, None]:
        log = work.log
        if log.is_closed:
            return
        if error is not None or log.is_offline:
            self._discard(work)
        if isinstance(error, BatchError):
            self._uncleanable = {log, *(other for other in self._uncleanable if not other.is_closed)}
            self.failures += 1
            logger.error("%s: compaction is off, the log is corrupt: %s", log.name, error)
        elif isinstance(error, Cancelled) or log.is_offline:
            return
        elif error is not None:
            self._pause(log, error)
        else:
            try:
                clean_to = yield from self._swap_in(work)
            except (OSError, MemoryError) as err:
                # What a later round merged would be what that swap replaces when the partition is opened again.
                log.fail(err if isinstance(err, OSError) else out_of_memory(), torn=True)
                return
            self._pauses.pop(log, None)
            if clean_to > work.first_dirty_offset or clean_to == work.end_offset:
                self._write_progress(log, clean_to)

    def _swap_in(self, work: Round) -> Generator[None, None, int]:
        """Swap in all groups and return the offset below which the log is clean. Yields after each, for its renames
        wait for the file system. If retention removed a source segment of a group, or the partition went away, the
        swap ends before that group, because a later group may contain the tombstone of a key that the group still has.
        After an OSError the files may be inconsistent until recovery."""
        log = work.log
        for group in work.groups:
            if log.is_closed or log.is_offline or not swap(log, group, self._services):
                logger.info("%s: compaction ends at offset %d, its segments changed", log.name, group.base_offset)
                self._discard(work)
                return group.base_offset
            try:
                yield
            except GeneratorExit:  # the broker stops
                self._discard(work)
                raise
        written = sum(group.written_bytes for group in work.groups)
        read_bytes = sum(source.size_bytes for group in work.groups for source in group.sources)
        self.rounds += 1
        self.read_bytes += read_bytes
        self.written_bytes += written
        logger.info("%s: compacted %d to %d bytes below offset %d", log.name, read_bytes, written, work.end_offset)
        return work.end_offset

    def _discard(self, work: Round) -> None:
        try:
            work.discard()
        except OSError as err:
            logger.warning("%s: what a round of compaction left is removed later: %s", work.log.name, err)

    def _write_progress(self, log: PartitionLog, offset: int) -> None:
        """Write how far the log is clean, unless it was deleted or taken offline between two groups."""
        if log.is_closed or log.is_offline:
            return
        data_dir: DataDir = self._logs.dir_of(log)
        data_dir.cleaner_offsets[log.topic, log.partition] = offset
        try:
            data_dir.write_offsets(checkpoint.CLEANER_OFFSETS, data_dir.cleaner_offsets, sync=False)
        except OSError as err:
            # The next round writes it again. After a crash before that, some records are cleaned twice, which is
            # harmless.
            logger.warning("%s cannot be written: %s", checkpoint.CLEANER_OFFSETS, err)


def _attempt(work: Round) -> Exception | None:
    try:
        work.run()
    except (Cancelled, OSError, BatchError) as err:
        return err
    except BaseException as err:
        # The event loop waits for the result, so every exception is reported to it.
        logger.exception("compaction of %s failed", work.log.name)
        return RuntimeError(f"{type(err).__name__}: {err}")
    return None


def swap(log: PartitionLog, group: Group, services: LogServices) -> bool:
    """Replace the source segments of a group by its new segment. Returns False and changes nothing if a source segment
    was replaced or deleted. Crash-safe: see `log_files.finish_swaps`. Raises OSError."""
    first = log.segment_at(group.base_offset)
    old = log.segments[max(first, 0) : max(first, 0) + len(group.sources)]
    if old != [source.segment for source in group.sources]:
        return False
    cleaned = Segment(log.directory, group.base_offset, services.files, services.clock.now_ms(), names.CLEANED)
    cleaned.rename(names.SWAP)
    for segment in old:
        retire_segment(segment, services, log.config.file_delete_delay_ms)
        if segment.base_offset != group.base_offset:
            remove_snapshot(f"{log.directory}/", segment.base_offset)
    cleaned.rename("")
    cleaned.attach(group.written_bytes)
    log.segments[first : first + len(old)] = [cleaned]
    log.content_changed()
    return True

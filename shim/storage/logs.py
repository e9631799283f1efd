"""All partitions of this broker: placement in data directories, recovery, deletion, periodic work, clean stop (Kafka:
LogManager)."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage import checkpoint, names, recovery, reopening, retention
from kafka_shim.storage.cleaner import Cleaner
from kafka_shim.storage.data_dir import (
    PARTITION_METADATA,
    DataDir,
    read_topic_id,
)
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.log_dirs import DirStatus, LogDirs
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.results import StorageError
from kafka_shim.storage.services import LogServices, nothing
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig, TopicConfig
    from kafka_shim.faults import Faults
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.services import MarkerHook

logger = logging.getLogger(__name__)

Lookup = Callable[[str, int], "tuple[bytes, TopicConfig, int] | None"]
# How many partitions a periodic task handles before it yields to the event loop.
SLICE = 20


class Logs:
    """The partitions by (topic, partition). `server` creates and stops it. Event-loop thread only.

    A start calls, in this order: `Logs(...)`; `open_dirs()`, which locks the directories and reads or writes
    `meta.properties`; `open_metadata_log()`, which the metadata store then replays; `start(lookup)`, which finds the
    partitions; `run_periodically()` once the event loop runs. `stop()` comes last.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, faults: Faults) -> None:
        # fixed
        self.config = config
        self.clock = clock
        self.node_id = config.node_id
        self.services = LogServices(config, clock, faults)
        self.services.start_offset_raised = self._start_offset_raised
        # set during the start
        self.log_dirs = LogDirs(config, clock.random)
        self.cluster_id = ""
        self.broker_epoch = -1
        self.metadata_log: PartitionLog | None = None
        self._lookup: Lookup | None = None
        # `_logs`: loaded partitions. `_unused`: partitions that were not used since the start, with their directory.
        # `_to_create`: partitions whose directory is created later. `_to_retire`: deleted partitions whose directory is
        # renamed later, as (data directory, log, delay of the removal in ms).
        self._logs: dict[Partition, PartitionLog] = {}
        self._unused: dict[Partition, DataDir] = {}
        # The value is the error of the last attempt to create the directory, or None before the first attempt.
        self._to_create: dict[Partition, KafkaError | None] = {}
        self._to_retire: dict[Partition, tuple[DataDir, PartitionLog | None, int]] = {}
        self._dir_of: dict[PartitionLog, DataDir] = {}
        # Partitions that exist in the metadata but in none of the usable directories.
        self._absent: set[Partition] = set()
        # Those of `_unused` that could not be loaded at their last use, with the error.
        self._not_loaded: dict[Partition, OSError] = {}
        self._scheduler = Scheduler(clock)
        # The recovery points and high watermarks that were last written, by directory.
        self._points_written: dict[DataDir, tuple[dict[Partition, int], dict[Partition, int]]] = {}
        self.cleaner = Cleaner(self, self.services)

    @property
    def on_marker(self) -> list[MarkerHook]:
        """Hooks called with (log, producer_id, producer_epoch, commit, offset) after each transaction marker. The group
        coordinator uses one to complete transactional offset commits."""
        return self.services.on_marker

    # --- start

    @property
    def dirs(self) -> list[DataDir]:
        """The usable directories of `log.dirs`."""
        return self.log_dirs.live

    @property
    def failed_dirs(self) -> list[str]:
        """The paths of the directories that could not be used at this start."""
        return self.log_dirs.failed

    @property
    def metadata_dir(self) -> DataDir:
        """The directory that contains the metadata log."""
        return self.log_dirs.metadata_dir

    def open_dirs(self, cluster_id: str | None = None) -> str:
        """Lock the directories and return the cluster id; empty directories get `cluster_id` (see `LogDirs.open`)."""
        self.cluster_id = self.log_dirs.open(cluster_id)
        return self.cluster_id

    def open_metadata_log(self) -> PartitionLog:
        """Recover and return `__cluster_metadata-0` in `metadata.log.dir` (default: the first log directory). Creates
        it if it does not exist."""
        data_dir = self.metadata_dir
        path = data_dir.partition_path(CLUSTER_METADATA_TOPIC, 0)
        if not os.path.isdir(path):
            data_dir.make_partition(CLUSTER_METADATA_TOPIC, 0, CLUSTER_METADATA_TOPIC_ID)
        log = PartitionLog(
            self.services, path, CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID, 0, self._metadata_config()
        )
        # There is no recovery point for this log, as in Kafka, so a crash means a full scan: the log is short, and the
        # whole state depends on its end.
        recovery.load(log, self.services, recovery.Start(clean=data_dir.was_clean))
        self.metadata_log = log
        return log

    def _metadata_config(self) -> TopicConfig:
        from kafka_shim.config import TopicConfig

        overrides = {
            "segment.bytes": str(self.config.metadata_log_segment_bytes),
            "segment.ms": str(self.config.metadata_log_segment_ms),
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "max.message.bytes": str(8 * 1024 * 1024),
        }
        return TopicConfig(self.config, overrides)

    def start(self, lookup: Lookup) -> None:
        """Find every partition directory. `lookup(topic, partition)` returns (topic_id, config, leader_epoch), or None
        if the partition is not in the metadata; its directory is then renamed with the suffix `-stray`. After a clean
        stop a partition is loaded at its first use. After a crash every partition is recovered here."""
        self._lookup = lookup
        for data_dir in list(self.dirs):
            if not self.log_dirs.usable_after(data_dir, partial(self._scan, data_dir, lookup)):
                self._unused = {one: where for one, where in self._unused.items() if where is not data_dir}
        for data_dir in self.dirs:
            if not data_dir.was_clean and data_dir.partitions:
                logger.info("%s: no clean stop, recovering %d partitions", data_dir.path, len(data_dir.partitions))
                for partition in sorted(data_dir.partitions):
                    self.find(*partition)

    def _scan(self, data_dir: DataDir, lookup: Lookup) -> None:
        live, deleted = data_dir.scan()
        for path in deleted:
            self.services.flusher.run(partial(_remove_tree, path))
        for partition in live:
            self._found(data_dir, partition, lookup)

    def _found(self, data_dir: DataDir, partition: Partition, lookup: Lookup) -> None:
        topic, number = partition
        path = data_dir.partition_path(topic, number)
        facts = lookup(topic, number)
        if facts is None:
            self._set_aside(data_dir, partition, "the metadata does not know it")
            return
        first = self._unused.get(partition)
        if first is not None:
            # The topic was deleted and created again while one of the directories could not be used.
            wanted = uuid_text(facts[0])
            if read_topic_id(path) not in (None, wanted):
                self._set_aside(data_dir, partition, "it belongs to another topic of that name")
                return
            if read_topic_id(first.partition_path(topic, number)) in (None, wanted):
                raise StorageError(f"{topic}-{number} is in two data directories: {path} is the second")
            self._set_aside(first, partition, "it belongs to another topic of that name")
            first.partitions.discard(partition)
        data_dir.partitions.add(partition)
        self._unused[partition] = data_dir

    def _set_aside(self, data_dir: DataDir, partition: Partition, reason: str) -> None:
        stray = names.retired_name(*partition, names.STRAY_DIR, self.clock.random)
        path = data_dir.partition_path(*partition)
        os.rename(path, f"{data_dir.path}/{stray}")
        logger.warning("%s was set aside as %s: %s", path, stray, reason)

    def _load(self, partition: Partition) -> PartitionLog | None:
        """Load a partition from its directory and register its log. Raises KafkaError KAFKA_STORAGE_ERROR. If the
        process lacks descriptors or memory, the next use tries again. After any other error the partition is offline
        until `reopen_offline` or the next start loads it."""
        data_dir = self._unused[partition]
        facts = self._lookup(*partition) if self._lookup is not None else None
        if facts is None:
            del self._unused[partition]
            return None
        failed = self._not_loaded.get(partition)
        if failed is not None and failed.errno not in OUT_OF_RESOURCES:
            raise _not_loaded(partition, failed)
        path = data_dir.partition_path(*partition)
        log = PartitionLog(self.services, path, partition[0], facts[0], partition[1], facts[1])
        log.leader_epoch = facts[2]
        try:
            # First: the checkpoints of an older topic of this name do not hold for the new one.
            self._check_topic_id(data_dir, partition, facts[0])
            start = recovery.Start(
                clean=data_dir.was_clean,
                start_offset=data_dir.start_offsets.get(partition, 0),
                recovery_point=data_dir.recovery_points.get(partition, 0),
            )
            recovery.load(log, self.services, start)
        except (OSError, ValueError) as err:
            for segment in log.segments:
                segment.abandon()
            error = err if isinstance(err, OSError) else OSError(errno.EIO, str(err))
            if failed is None or failed.errno != error.errno:  # one line, whatever the number of requests
                logger.error("%s is offline, to be loaded again soon: %s (%s)", log.name, error, path)  # noqa: TRY400
            self._not_loaded[partition] = error
            if error.errno not in OUT_OF_RESOURCES:
                self.services.reopen_wanted()
            raise _not_loaded(partition, error) from err
        self._not_loaded.pop(partition, None)
        del self._unused[partition]
        self._logs[partition] = log
        self._dir_of[log] = data_dir
        return log

    def _check_topic_id(self, data_dir: DataDir, partition: Partition, topic_id: bytes) -> None:
        """Rename the directory as stray if its topic id is not `topic_id`, and create a new one in its place."""
        path = data_dir.partition_path(*partition)
        stored = read_topic_id(path)
        if stored is not None and stored != uuid_text(topic_id):
            self._set_aside(data_dir, partition, f"it belongs to the topic id {stored}")
            for offsets in (data_dir.start_offsets, data_dir.recovery_points, data_dir.cleaner_offsets):
                offsets.pop(partition, None)
            stored = None
        if stored is None:
            data_dir.make_partition(*partition, topic_id)

    # --- find

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log, or None if it does not exist, is offline or cannot be loaded now; `get` tells these cases
        apart."""
        log = self._logs.get((topic, partition))
        if log is None:
            try:
                log = self._first_use((topic, partition))
            except KafkaError:
                return None
        return None if log is None or log.is_offline else log

    def get(self, topic: str, partition: int) -> PartitionLog:
        """Return the log. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR if the log or its
        directory is offline, or if the log cannot be loaded or created now."""
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._first_use((topic, partition))
            if log is None:
                absent = (topic, partition) in self._absent
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR if absent else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if log.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return log

    def _first_use(self, partition: Partition) -> PartitionLog | None:
        if partition in self._unused:
            return self._load(partition)
        if partition in self._to_create:
            return self._create_now(partition)
        return None

    def all(self) -> Iterator[PartitionLog]:
        """Yield every online partition. A partition that was not used yet is loaded when the iteration reaches it."""
        for partition in self.names():
            log = self.find(*partition)
            if log is not None:
                yield log

    def loaded(self) -> list[PartitionLog]:
        """Return the online partitions that were loaded since the start."""
        return [log for log in self._logs.values() if not log.is_offline]

    def dir_of(self, log: PartitionLog) -> DataDir:
        """Return the data directory of a loaded partition."""
        return self._dir_of[log]

    def names(self) -> list[Partition]:
        """Return every partition in the usable directories, online or not. Loads nothing."""
        return [*self._logs, *self._unused, *self._to_create]

    @property
    def offline_count(self) -> int:
        """How many partitions are offline because of an I/O error or because their directory failed at the start."""
        return len(self.services.offline) + len(self._absent) + self._unloadable_count

    @property
    def _unloadable_count(self) -> int:
        return sum(err.errno not in OUT_OF_RESOURCES for err in self._not_loaded.values())

    def is_offline(self, topic: str, partition: int) -> bool:
        """Whether `offline_count` includes the partition. Metadata responses then show it without a leader."""
        if not self.offline_count:
            return False
        key = (topic, partition)
        log = self._logs.get(key)
        if log is not None:
            return log.is_offline
        failed = self._not_loaded.get(key)
        return key in self._absent or (failed is not None and failed.errno not in OUT_OF_RESOURCES)

    def is_unread(self, topic: str, partition: int) -> bool:
        """Whether the last attempt to load the partition failed because the process lacked descriptors or memory."""
        failed = self._not_loaded.get((topic, partition))
        return failed is not None and failed.errno in OUT_OF_RESOURCES

    def mark_absent(self, partitions: Iterable[Partition]) -> None:
        """Mark partitions that exist but are in no usable directory. They are in one of `failed_dirs` and stay offline
        until a start finds that directory usable."""
        self._absent.update(partitions)

    def directory_id(self, topic: str, partition: int) -> str:
        """Return the directory id of the partition as text, or an empty string if no usable directory contains it."""
        for data_dir in self.dirs:
            if (topic, partition) in data_dir.partitions:
                return data_dir.directory_id
        return ""

    # --- change

    def has(self, topic: str, partition: int) -> bool:
        """Whether the partition exists, online or not, or in a failed directory. Loads nothing."""
        key = (topic, partition)
        return key in self._logs or key in self._unused or key in self._to_create or key in self._absent

    def create(
        self, topic: str, topic_id: bytes, partition: int, config: TopicConfig, leader_epoch: int = 0
    ) -> PartitionLog:
        """Create the partition in the directory with the fewest partitions, or return the existing one. Raises
        KafkaError KAFKA_STORAGE_ERROR; the next use then tries again."""
        if self.has(topic, partition):
            return self.get(topic, partition)
        return self._make((topic, partition), topic_id, config, leader_epoch)

    def _make(self, key: Partition, topic_id: bytes, config: TopicConfig, leader_epoch: int) -> PartitionLog:
        topic, partition = key
        if key in self._to_retire:
            self._retire_directory(key)  # an older topic of this name
        data_dir = min(self.dirs, key=_partition_count)  # the first of equals
        path = data_dir.partition_path(topic, partition)
        log = PartitionLog(self.services, path, topic, topic_id, partition, config)
        log.leader_epoch = leader_epoch
        try:
            self._forget_older(key)
            if os.path.isdir(path) and read_topic_id(path) != uuid_text(topic_id):
                # A failed deletion left this directory; it contains data of another topic id.
                self._set_aside(data_dir, key, "it was left over where a new partition begins")
            data_dir.make_partition(topic, partition, topic_id)
            recovery.load(log, self.services, recovery.Start(clean=True))
        except OSError as err:
            _remove_empty(path)
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} cannot be made: {err}")
            if self._to_create.get(key) is None:  # one line, whatever the number of requests
                logger.warning("%s; its next use tries again", error.message)
            self._to_create[key] = error
            raise error from err
        self._to_create.pop(key, None)
        data_dir.partitions.add(key)
        self._logs[key] = log
        self._dir_of[log] = data_dir
        return log

    def _forget_older(self, key: Partition) -> None:
        """Remove the checkpoint entries of an older topic with this name before the new directory is created.
        Otherwise, after a crash, they would be read as the new partition's start offset or cleaner offset. (A recovery
        point that is too high only makes recovery skip the scan of closed segments.) Raises OSError."""
        for data_dir in self.dirs:
            if data_dir.has_entry(checkpoint.LOG_START_OFFSETS, key):
                data_dir.start_offsets.pop(key, None)
                self._write_start_offsets(data_dir, sync=True)
            if data_dir.has_entry(checkpoint.CLEANER_OFFSETS, key):
                data_dir.cleaner_offsets.pop(key, None)
                data_dir.write_offsets(checkpoint.CLEANER_OFFSETS, data_dir.cleaner_offsets, sync=True)

    def create_later(self, partitions: Iterable[Partition]) -> None:
        """Register new partitions. Their directories are created at the first use or by `finish_changes`. After a crash
        before that, the next start creates the missing directories."""
        self._to_create.update(dict.fromkeys(partitions))

    async def finish_changes(self) -> None:
        """Create the directories of partitions registered by `create_later` and rename those of deleted partitions.
        Yields to the event loop after every `SLICE` partitions. Raises KafkaError KAFKA_STORAGE_ERROR if a directory
        could not be created; the next use of that partition then tries again."""
        from asyncio import sleep

        failure: KafkaError | None = None
        work: list[tuple[Callable[[Partition], object], Partition]] = [
            (self._retire_directory, one) for one in self._to_retire
        ]
        work += [(self._create_now, one) for one, failed in self._to_create.items() if failed is None]
        for at in range(0, len(work), SLICE):
            for step, partition in work[at : at + SLICE]:
                try:
                    step(partition)
                except KafkaError as err:
                    failure = failure or err
            await sleep(0)
        if failure is not None:
            raise failure

    def _create_now(self, partition: Partition) -> PartitionLog | None:
        if partition not in self._to_create:  # it was used or deleted in the meantime
            return self._logs.get(partition)
        facts = self._lookup(*partition) if self._lookup is not None else None
        if facts is None:
            del self._to_create[partition]
            return None
        return self._make(partition, *facts)

    def delete(self, topic: str, partition: int, *, later: bool = False) -> None:
        """Delete a partition: close the log, wake its readers, rename its directory to `-delete`. With `later`,
        `finish_changes` renames it. The files are removed after `file.delete.delay.ms`. The name can be reused at once.
        Does nothing if the partition does not exist."""
        key = (topic, partition)
        self._absent.discard(key)
        self._to_create.pop(key, None)
        self._not_loaded.pop(key, None)
        log = self._logs.pop(key, None)
        data_dir = self._dir_of.pop(log, None) if log is not None else self._unused.pop(key, None)
        if data_dir is None:
            return
        faults = self.services.faults
        if faults.armed:
            faults.reach("log.before_delete", topic=topic, partition=partition)
        delay_ms = self.config.log_segment_delete_delay_ms
        if log is not None:
            delay_ms = log.config.file_delete_delay_ms
            log.retire()
            self.services.offline.discard(log)
        data_dir.partitions.discard(key)
        data_dir.start_offsets.pop(key, None)
        data_dir.recovery_points.pop(key, None)
        data_dir.cleaner_offsets.pop(key, None)
        self._to_retire[key] = data_dir, log, delay_ms
        if not later:
            self._retire_directory(key)

    def _retire_directory(self, partition: Partition) -> None:
        """Rename the directory of a deleted partition and schedule its removal."""
        deleted = self._to_retire.pop(partition, None)
        if deleted is None:  # already done, because a new topic took this name
            return
        data_dir, log, delay_ms = deleted
        path = data_dir.partition_path(*partition)
        retired = f"{data_dir.path}/{names.retired_name(*partition, names.DELETE_DIR, self.clock.random)}"
        try:
            os.rename(path, retired)
        except OSError as err:
            logger.warning("%s cannot be renamed for deletion: %s", path, err)
        if log is not None:
            log.moved(retired)
        self.services.later(delay_ms, partial(_remove_tree, retired))

    def configure(self, topic: str, config: TopicConfig) -> None:
        """Apply a changed topic configuration to the loaded partitions of the topic."""
        for log in self._logs.values():
            if log.topic == topic:
                log.configure(config)

    def configure_all(self, config_of: Callable[[str], TopicConfig]) -> None:
        """Apply changed broker options, which are the defaults of every topic's configuration."""
        for log in self._logs.values():
            log.configure(config_of(log.topic))

    # --- periodic work

    def run_periodically(self) -> None:
        """Start the timers of retention, flush, checkpoints, producer expiry, reopening and compaction. With the real
        clock it needs a running event loop."""
        config = self.config
        every = self._scheduler.every
        every("retention", config.log_retention_check_interval_ms, self._retain_in_slices)
        every("checkpoint", config.log_flush_offset_checkpoint_interval_ms, self._checkpoint_aside)
        every("expiry", config.producer_id_expiration_check_interval_ms, self._expire_producers_now)
        self.services.flush_wished = self._look_at_flushes
        if self.services.flush_wanted:
            self._look_at_flushes()
        self.services.reopen_wanted = self._reopen_soon
        if self.services.offline or self._unloadable_count:
            self._reopen_soon()
        self.cleaner.schedule()

    def reopen_offline(self) -> bool:
        """Reload the partitions that are offline or could not be loaded. Returns True if none is left."""
        for partition in [one for one, err in self._not_loaded.items() if err.errno not in OUT_OF_RESOURCES]:
            del self._not_loaded[partition]
            self.find(*partition)
        for log in list(self.services.offline):
            try:
                reopening.reopen(log, self.services)
            except (OSError, ValueError) as err:
                logger.warning("%s stays offline: %s", log.name, err)
        return not self.services.offline and not self._unloadable_count

    def _reopen_soon(self, pause_ms: int = reopening.FIRST_PAUSE_MS) -> None:
        """Try to reopen offline partitions after a pause. The pause doubles while a partition stays offline."""

        def look() -> None:
            # What fails again meanwhile must not ask for the first, short pause.
            self.services.reopen_wanted = nothing
            is_done = False
            try:
                is_done = self.reopen_offline()
            finally:
                self.services.reopen_wanted = self._reopen_soon
                if not is_done:
                    self._reopen_soon(min(2 * pause_ms, reopening.LONGEST_PAUSE_MS))

        if not self._scheduler.is_scheduled("reopen"):
            self._scheduler.after("reopen", pause_ms, look)

    def _look_at_flushes(self) -> None:
        """Check `flush.ms` every second while a partition has unflushed data."""

        def look() -> None:
            self.flush_due(self.clock.now_ms())
            if self.services.flush_wanted:
                self._look_at_flushes()

        if not self._scheduler.is_scheduled("flush"):
            self._scheduler.after("flush", FLUSH_CHECK_MS, look)

    def retain(self, now_ms: int) -> int:
        """Apply retention to all partitions. Returns the number of deleted segments."""
        return sum(self._retain_one(log, now_ms) for log in self.all())

    def _retain_one(self, log: PartitionLog, now_ms: int) -> int:
        if log.is_closed or log.is_offline or (len(log.segments) == 1 and log.segments[0].size_bytes == 0):
            return 0
        try:
            return retention.delete_old_segments(log, self.services, now_ms)
        except OSError as err:
            log.fail(err)
            return 0

    def _retain_in_slices(self) -> None:
        """Apply retention as `retain` does, but yield to the event loop after every `SLICE` partitions."""
        self._scheduler.in_slices("slices of retention", self._slices_of_retention(), pause_ms=1)

    def _slices_of_retention(self) -> Iterator[None]:
        now_ms = self.clock.now_ms()
        for number, log in enumerate(self.all(), 1):
            self._retain_one(log, now_ms)
            if number % SLICE == 0:
                yield

    def flush_due(self, now_ms: int) -> int:
        """Request an fsync of the partitions whose `flush.ms` has passed. Returns how many."""
        wanted = self.services.flush_wanted
        due = [log for log in wanted if now_ms - log.unflushed_since_ms >= log.config.flush_ms]
        for log in due:
            log.request_flush()
        return len(due)

    def expire_producers(self, now_ms: int) -> int:
        """Remove producers that were inactive for `producer.id.expiration.ms`. Returns how many."""
        return sum(log.producers.expire(now_ms, self.config.producer_id_expiration_ms) for log in self._logs.values())

    def _expire_producers_now(self) -> None:
        self.expire_producers(self.clock.now_ms())

    def checkpoint(self, *, sync: bool = False) -> None:
        """Write the recovery point, log start offset and high watermark checkpoints of all directories. Logs I/O
        errors."""
        for data_dir in self.dirs:
            try:
                self._checkpoint(data_dir, sync=sync)
            except OSError as err:
                logger.warning("the checkpoints of %s cannot be written: %s", data_dir.path, err)

    def _checkpoint(self, data_dir: DataDir, *, sync: bool) -> None:
        _write_points(data_dir, *self._points(data_dir), sync=sync)
        self._write_start_offsets(data_dir, sync=sync)

    def _checkpoint_aside(self) -> None:
        """Write the recovery point and high watermark checkpoints that changed, in the flusher thread, because they may
        be long. Log start offsets are written when they change."""
        for data_dir in self.dirs:
            points = self._points(data_dir)
            if self._points_written.get(data_dir) != points:
                self.services.flusher.run(partial(self._write_points_aside, data_dir, points))

    def _write_points_aside(self, data_dir: DataDir, points: tuple[dict[Partition, int], dict[Partition, int]]) -> None:
        # Runs in the flusher thread, which runs one task at a time.
        self._points_written.pop(data_dir, None)
        _write_points(data_dir, *points, sync=False)
        self._points_written[data_dir] = points

    def _points(self, data_dir: DataDir) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """Return the recovery points and the high watermarks of all partitions in a directory."""
        recovery_points: dict[Partition, int] = {}
        high_watermarks: dict[Partition, int] = {}
        for partition, log in self._logs.items():
            if self._dir_of[log] is data_dir:
                recovery_points[partition] = log.recovery_point
                high_watermarks[partition] = log.log_end_offset
        for partition, where in self._unused.items():
            if where is data_dir:
                # Not used since the last clean stop, when both were equal to the log end offset.
                recovery_points[partition] = high_watermarks[partition] = data_dir.recovery_points.get(partition, 0)
        return recovery_points, high_watermarks

    def _write_start_offsets(self, data_dir: DataDir, *, sync: bool) -> None:
        # As in Kafka, an entry is written only if the start offset is above the first segment's base offset.
        offsets = {
            partition: log.log_start_offset
            for partition, log in self._logs.items()
            if self._dir_of[log] is data_dir and log.segments and log.log_start_offset > log.segments[0].base_offset
        }
        for partition, where in self._unused.items():
            if where is data_dir and partition in data_dir.start_offsets:
                offsets[partition] = data_dir.start_offsets[partition]
        data_dir.write_offsets(checkpoint.LOG_START_OFFSETS, offsets, sync=sync)

    def _start_offset_raised(self, log: PartitionLog) -> None:
        # Kafka writes this checkpoint once a minute and may lose an acknowledged DeleteRecords in a crash. Here it is
        # written before the response.
        data_dir = self._dir_of.get(log)
        if data_dir is not None:
            try:
                self._write_start_offsets(data_dir, sync=False)
            except OSError as err:
                raise log.fail(err) from err

    # --- stop

    def stop(self) -> None:
        """Stop cleanly: flush and close all partitions, write checkpoints, snapshots and the clean-shutdown file,
        unlock the directories. Blocks."""
        self._scheduler.stop()
        self.services.flush_wished = self.services.reopen_wanted = nothing
        self.cleaner.stop()
        for partition in list(self._to_retire):
            self._retire_directory(partition)
        self.services.cancel_removals()
        logs = [*self._logs.values()] if self.metadata_log is None else [*self._logs.values(), self.metadata_log]
        unsynced: list[str] = []
        closed: list[PartitionLog] = []
        for log in logs:
            try:
                unsynced += log.close()
            except OSError as err:
                logger.error("%s cannot be closed, the next start recovers it: %s", log.name, err)  # noqa: TRY400
                log.retire()
            else:
                closed.append(log)
        synced = self._sync(unsynced)
        self.services.flusher.stop()
        whole = {log for log in closed if not log.is_offline and log.sync_error is None}
        unclean = {self._dir_of.get(log, self.metadata_dir) for log in logs if log not in whole}
        # A partition that was not loaded is as clean as at the start, unless an attempt to load it failed.
        unclean.update(
            data_dir
            for partition, data_dir in self._unused.items()
            if not data_dir.was_clean or partition in self._not_loaded
        )
        for log in whole if synced else ():
            log.closed()
        for data_dir in self.dirs:
            try:
                if self._lookup is not None:
                    self._checkpoint(data_dir, sync=True)
                    if synced and data_dir not in unclean:
                        data_dir.mark_clean(self.broker_epoch)
            except OSError as err:
                logger.warning("%s cannot be marked as cleanly stopped: %s", data_dir.path, err)
        for data_dir in self.dirs:
            data_dir.unlock()

    def _sync(self, paths: list[str]) -> bool:
        if not paths:
            return True
        try:
            self.services.flusher.sync_all(paths, [data_dir.path for data_dir in self.dirs]).result()
        except OSError:
            logger.exception("the data directories cannot be synced, the next start will recover them")
            return False
        return True

    # --- describe

    async def describe_dirs(self, wanted: set[Partition] | None = None) -> list[DirStatus]:
        """Return the status of each usable directory for DescribeLogDirs: path, bytes, and the sizes of all partitions
        or of those in `wanted`. Loads nothing: for a partition that is not loaded, the sizes come from the file system.
        Yields to the event loop after every `SLICE` partitions."""
        from asyncio import sleep

        found: dict[DataDir, list[tuple[str, int, int, bool]]] = {data_dir: [] for data_dir in self.dirs}
        keys = [key for key in (*self._logs, *self._unused) if wanted is None or key in wanted]
        for at in range(0, len(keys), SLICE):
            for key in keys[at : at + SLICE]:
                log = self._logs.get(key)
                if log is not None:
                    found[self._dir_of[log]].append((*key, log.size_bytes, log.is_offline))
                    continue
                data_dir = self._unused.get(key)
                if data_dir is not None:  # otherwise it was deleted in the meantime
                    found[data_dir].append((*key, _stored_bytes(data_dir.partition_path(*key)), self.is_offline(*key)))
            await sleep(0)
        return [DirStatus(data_dir, partitions) for data_dir, partitions in found.items()]


FLUSH_CHECK_MS = 1000


def _stored_bytes(path: str) -> int:
    """Return the total size of the .log files in a partition directory, or 0 if it cannot be read."""
    try:
        return sum(recovery.list_files(path).values())
    except OSError:
        return 0


def _partition_count(data_dir: DataDir) -> int:
    return len(data_dir.partitions)


def _not_loaded(partition: Partition, err: OSError) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition[0]}-{partition[1]} cannot be loaded: {err}")


def _remove_empty(path: str) -> None:
    """Remove the directory of a partition that could not be created. A directory with other files stays. Needs no file
    descriptor."""
    for name in (PARTITION_METADATA, f"{PARTITION_METADATA}.tmp"):
        with suppress(OSError):
            os.unlink(f"{path}/{name}")
    with suppress(OSError):
        os.rmdir(path)


def _write_points(
    data_dir: DataDir,
    recovery_points: dict[Partition, int],
    high_watermarks: dict[Partition, int],
    *,
    sync: bool,
) -> None:
    data_dir.write_offsets(checkpoint.RECOVERY_POINTS, recovery_points, sync=sync)
    data_dir.write_offsets(checkpoint.HIGH_WATERMARKS, high_watermarks, sync=sync)


def _remove_tree(path: str) -> None:
    # Imported late: it loads archive formats, which would cost milliseconds at every start.
    import shutil

    shutil.rmtree(path, ignore_errors=True)

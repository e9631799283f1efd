"""All partitions of this broker, and the one face of `shim.storage` (Kafka: LogManager).

The parts: `loader` (the scan at a start, the first use), `directories` (creation, deletion), `scheduled_tasks`,
`offset_checkpoints`, `clean_stop`; they share the table in `partitions`.
"""

from __future__ import annotations

import logging
import os
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID
from kafka_shim.storage import clean_stop, describing, names, recovery
from kafka_shim.storage.cleaner import Cleaner
from kafka_shim.storage.directories import PartitionDirectories
from kafka_shim.storage.loader import Loader
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.log_dirs import LogDirs
from kafka_shim.storage.moves import Moves
from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
from kafka_shim.storage.partitions import Partitions
from kafka_shim.storage.scheduled_tasks import ScheduledTasks
from kafka_shim.storage.services import LogServices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig, TopicConfig
    from kafka_shim.faults import Faults
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.describing import DirStatus
    from kafka_shim.storage.partitions import Lookup
    from kafka_shim.storage.services import MarkerHook

logger = logging.getLogger(__name__)

# How long topic and partition together may be, so that the name of the `-future` directory fits into 255 bytes.
LONGEST_MOVABLE = names.MAX_NAME_LENGTH - len(f"-.{32 * '0'}{names.FUTURE_DIR}")
# How often it is looked for work that found no memory for its next timer.
RECOVER_EVERY_MS = 60_000


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
        # set during the start
        self.log_dirs = LogDirs(config, clock.random)
        self.cluster_id = ""
        self.broker_epoch = -1
        self.metadata_log: PartitionLog | None = None
        # the partitions, and the parts that change them
        self.partitions = Partitions()
        self._loaded = self.partitions.loaded
        self.checkpoints = OffsetCheckpoints(self.partitions, self.log_dirs, self.services.flusher)
        self._loader = Loader(self.partitions, self.log_dirs, self.services, self.checkpoints)
        self._directories = PartitionDirectories(
            self.partitions, self.log_dirs, self.services, self._loader, self.checkpoints
        )
        self.tasks = ScheduledTasks(self, self.partitions, self.services, self.checkpoints)
        self.cleaner = Cleaner(self, self.services)
        self.moves = Moves(self.partitions, self.services, self.checkpoints, self.cleaner)
        self._directories.deleted = self.moves.cancel
        self.checkpoints.arriving = self.moves.arriving
        self.services.start_offset_raised = self.checkpoints.start_offset_raised

    @property
    def on_marker(self) -> list[tuple[str | None, MarkerHook]]:
        """Hooks called with (log, producer_id, producer_epoch, commit, offset) after each transaction marker in a
        partition of their topic; None: of any. The group coordinator uses one to complete transactional offset
        commits."""
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
        # First: the mark must not come back behind what was fsynced, on a file system that keeps no order of names.
        self.services.flusher.sync([one.path for one in self.log_dirs.every if one.was_clean])
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
        self.metadata_log = self._directories.metadata_log = self.moves.metadata_log = log
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
        """As `start_in_steps`, all at once."""
        for _ in self.start_in_steps(lookup):
            pass

    def start_in_steps(self, lookup: Lookup) -> Iterator[None]:
        """Find every partition directory. `lookup(topic, partition)` returns (topic_id, config, leader_epoch), or None
        if the partition is not in the metadata; its directory is then renamed with the suffix `-stray`. After a clean
        stop a partition is loaded at its first use. After a crash every partition is recovered here, one in a step."""
        self._loader.find_directories(lookup)
        for data_dir in self.dirs:
            if not data_dir.was_clean and data_dir.partitions:
                logger.info("%s: no clean stop, partitions to recover: %d", data_dir.path, len(data_dir.partitions))
                for partition in sorted(data_dir.partitions):
                    self.find(*partition)
                    yield

    def run_periodically(self) -> None:
        """Start the timers of retention, flush, checkpoints, producer expiry, reopening and compaction. With the real
        clock it needs a running event loop."""
        self.tasks.start(self.config)
        self.tasks.scheduler.every("recovery", RECOVER_EVERY_MS, self._recover)
        self.cleaner.schedule()
        for key, target in self._loader.unfinished.items():
            self._resume_move(key, target)
        self._loader.unfinished.clear()

    def _recover(self) -> None:
        self.services.removals.recover()
        self._directories.recover()
        self.moves.recover()

    def _resume_move(self, key: Partition, target: DataDir) -> None:
        """Go on with a move that the last stop interrupted. What was copied is copied again."""
        for data_dir in self.dirs:
            for path in data_dir.futures.get(key, ()):
                self.moves.give_up(key, data_dir, path)
        if (log := self.find(*key)) is not None:
            try:
                self.moves.start(log, target)
            except OSError as err:
                logger.warning("%s cannot be moved to %s: %s", log.name, target.path, err)

    def know_assignments(
        self,
        assigned: Callable[[Partition], str],
        assign: Callable[[Partition, str], None],
        placed: Callable[[Partition], None],
    ) -> None:
        """Take over what the metadata knows of the directories of partitions: `assigned(partition)` returns the
        directory id or an empty string, `assign(partition, directory_id)` records one and raises KafkaError, `placed`
        is called with each new partition. Call it before `start`."""
        self._loader.assigned = assigned
        self.moves.assign = assign
        self._directories.placed = placed

    # --- find

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log, or None if it does not exist, is offline or cannot be loaded now; `get` tells these cases
        apart."""
        log = self._loaded.get((topic, partition))
        if log is None:
            try:
                log = self._first_use((topic, partition))
            except KafkaError:
                return None
        return None if log is None or log.is_offline else log

    def get(self, topic: str, partition: int) -> PartitionLog:
        """Return the log. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR if the log or its
        directory is offline, or if the log cannot be loaded or created now."""
        log = self._loaded.get((topic, partition))
        if log is None:
            log = self._first_use((topic, partition))
            if log is None:
                absent = (topic, partition) in self.partitions.absent
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR if absent else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if log.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return log

    def _first_use(self, partition: Partition) -> PartitionLog | None:
        if partition in self.partitions.unused:
            return self._loader.load(partition)
        if partition in self.partitions.to_create:
            return self._directories.create_now(partition)
        return None

    def all(self) -> Iterator[PartitionLog]:
        """Yield every online partition. A partition that was not used yet is loaded when the iteration reaches it."""
        for partition in self.names():
            if (log := self.find(*partition)) is not None:
                yield log

    def loaded(self) -> list[PartitionLog]:
        """Return the online partitions that were loaded since the start."""
        return [log for log in self._loaded.values() if not log.is_offline]

    def dir_of(self, log: PartitionLog) -> DataDir:
        """Return the data directory of a loaded partition."""
        return self.partitions.dir_of[log]

    def names(self) -> list[Partition]:
        """Return every partition in the usable directories, online or not. Loads nothing."""
        return self.partitions.names()

    def has(self, topic: str, partition: int) -> bool:
        """Whether the partition exists, online or not, or in a failed directory. Loads nothing."""
        return self.partitions.has((topic, partition))

    @property
    def offline_count(self) -> int:
        """How many partitions are offline because of an I/O error or because their directory failed at the start."""
        return len(self.services.offline) + len(self.partitions.absent) + self.partitions.unloadable_count

    def is_offline(self, topic: str, partition: int) -> bool:
        """Whether `offline_count` includes the partition. Metadata responses then show it without a leader."""
        return bool(self.offline_count) and self.partitions.is_offline((topic, partition))

    def is_unread(self, topic: str, partition: int) -> bool:
        """Whether the last attempt to load the partition failed because the process lacked descriptors or memory."""
        return self.partitions.is_unread((topic, partition))

    def mark_absent(self, partitions: Iterable[Partition]) -> None:
        """Mark partitions that exist but are in no usable directory. They are in one of `failed_dirs` and stay offline
        until a start finds that directory usable."""
        self.partitions.absent.update(partitions)

    def directory_id(self, topic: str, partition: int) -> str:
        """Return the directory id of the partition as text, or an empty string if no usable directory contains it."""
        return next((one.directory_id for one in self.dirs if (topic, partition) in one.partitions), "")

    # --- change

    def create(
        self, topic: str, topic_id: bytes, partition: int, config: TopicConfig, leader_epoch: int = 0
    ) -> PartitionLog:
        """Create the partition in the directory with the fewest partitions, or return the existing one. Raises
        KafkaError KAFKA_STORAGE_ERROR; the next use then tries again."""
        if self.has(topic, partition):
            return self.get(topic, partition)
        return self._directories.create((topic, partition), topic_id, config, leader_epoch)

    def create_later(self, partitions: Iterable[Partition]) -> None:
        """Register new partitions. Their directories are created at the first use or by `finish_changes`. After a crash
        before that, the next start creates the missing directories."""
        self._directories.create_later(partitions)

    async def finish_changes(self, flushed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Create the directories of partitions registered by `create_later`, and once everything committed is `flushed`
        rename those of deleted partitions. Yields to the event loop after each `Slice`. The next use of a partition
        that could not be created tries again."""
        await self._directories.finish_changes(flushed)

    def delete(self, topic: str, partition: int, *, later: bool = False) -> None:
        """Delete a partition: close the log, wake its readers, rename its directory to `-delete`. With `later`,
        `finish_changes` renames it. The files are removed after `file.delete.delay.ms`. The name can be reused at once.
        Does nothing if the partition does not exist."""
        self._directories.delete((topic, partition), self.config.log_segment_delete_delay_ms, later=later)

    def move(self, topic: str, partition: int, path: str) -> None:
        """Move a partition to the directory `path` of `log.dirs`, or end its move if it is there. For a partition that
        does not exist yet the directory is remembered. Raises KafkaError as Kafka's ReplicaManager does."""
        key = (topic, partition)
        if len(topic) + len(str(partition)) > LONGEST_MOVABLE:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        target = next((one for one in self.dirs if one.path == path), None)
        if target is None:
            known = path in self.failed_dirs
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR if known else ErrorCode.LOG_DIR_NOT_FOUND)
        if self.log_dirs.is_cordoned(target):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
        going_to = self.moves.target_of(key)
        if going_to is target:
            return
        try:
            self.moves.cancel(key)
        except OSError as err:
            reason = f"{topic}-{partition} cannot be renamed back: {err}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason) from err
        if not self.has(topic, partition):
            self._directories.prefer(key, target)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        log = self.get(topic, partition)
        if self.partitions.dir_of[log] is target:
            return
        if self.failed_dirs:
            reason = f"{log.name} cannot move while {', '.join(self.failed_dirs)} cannot be used"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        try:
            self.moves.start(log, target)
        except OSError as err:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} cannot be moved: {err}") from err

    def configure(self, topic: str, partitions: int, config: TopicConfig) -> None:
        """Apply a changed topic configuration to the loaded ones of so many partitions of the topic. It looks at no
        others: a request may change a thousand topics."""
        for partition in range(partitions):
            if (log := self._loaded.get((topic, partition))) is not None:
                log.configure(config)

    def configure_all(self, config_of: Callable[[str], TopicConfig]) -> None:
        """Apply changed broker options, which are the defaults of every topic's configuration."""
        for log in self._loaded.values():
            log.configure(config_of(log.topic))

    # --- periodic work, also at once

    def reopen_offline(self) -> bool:
        """Reload the partitions that are offline or could not be loaded. Returns True if none is left."""
        return self.tasks.reopen_offline()

    def retain(self, now_ms: int) -> int:
        """Apply retention to all partitions. Returns the number of deleted segments."""
        return self.tasks.retain(now_ms)

    def flush_due(self, now_ms: int) -> int:
        """Request an fsync of the partitions whose `flush.ms` has passed. Returns how many."""
        return self.tasks.flush_due(now_ms)

    def expire_producers(self, now_ms: int) -> int:
        """Remove producers that were inactive for `producer.id.expiration.ms`. Returns how many."""
        return self.tasks.expire_producers(now_ms)

    # --- stop

    def stop(self) -> None:
        """Stop cleanly: flush and close all partitions, write checkpoints, snapshots and the clean-shutdown file,
        unlock the directories. A start that failed before it looked for partitions left them as they were. Blocks. What
        fails ends none of the rest: the directories are free afterwards."""
        for step in (self.tasks.stop, self.moves.stop, self.cleaner.stop):
            clean_stop.attempt(step)
        clean: set[DataDir] = set()
        closed = (self.partitions, self.metadata_log, self.log_dirs, self.services.flusher)
        clean_stop.attempt(lambda: clean.update(clean_stop.close_all(*closed)))
        for step in (self._directories.retire_all, self.services.removals.cancel_all, self.services.workers.stop):
            clean_stop.attempt(step)
        for data_dir in self.dirs:
            clean_stop.attempt(partial(self._mark, data_dir, is_clean=data_dir in clean))
        for data_dir in self.log_dirs.every:
            data_dir.unlock()

    def _mark(self, data_dir: DataDir, *, is_clean: bool) -> None:
        try:
            if self.partitions.lookup is not None:
                self.checkpoints.write(data_dir, sync=True)
            if is_clean and (self.partitions.lookup is not None or data_dir.was_clean):
                data_dir.mark_clean(self.broker_epoch)
        except OSError as err:
            logger.warning("%s cannot be marked as cleanly stopped: %s", data_dir.path, err)

    # --- describe

    async def describe_dirs(self, wanted: set[Partition] | None = None) -> list[DirStatus]:
        """Return the status of each usable directory for DescribeLogDirs: path, bytes, and the sizes of all partitions
        or of those in `wanted`. Loads nothing. Yields to the event loop after every slice of them."""
        futures = self.moves.futures()
        return await describing.describe_dirs(self.services.clock, self.partitions, self.log_dirs, futures, wanted)

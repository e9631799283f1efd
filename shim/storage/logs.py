"""All partitions of this broker in its data directories: recovery, placement, deletion, clean stop (Kafka:
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
from kafka_shim.storage.home import Home, nothing
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.log_dirs import DirStatus, LogDirs
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.results import StorageError
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig, TopicConfig
    from kafka_shim.faults import Faults
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.home import MarkerHook

logger = logging.getLogger(__name__)

Lookup = Callable[[str, int], "tuple[bytes, TopicConfig, int] | None"]
# Partitions that one turn of a periodic task looks at before the loop gets its turn.
SLICE = 20


class Logs:
    """Kafka's LogManager: the partitions by (topic, partition). Event-loop thread only; `server` makes and stops it.

    Order of a start: `Logs(...)`; `open_dirs()` locks the directories and reads or writes `meta.properties`;
    `open_metadata_log()`; the metadata store replays it; `start(lookup)` finds the partitions; `run_periodically()`
    once the loop runs; `stop()`.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, faults: Faults) -> None:
        # fixed
        self.config = config
        self.clock = clock
        self.node_id = config.node_id
        self.home = Home(config, clock, faults)
        self.home.start_offset_raised = self._start_offset_raised
        # of this life
        self.log_dirs = LogDirs(config, clock.random)
        self.cluster_id = ""
        self.broker_epoch = -1
        self.metadata_log: PartitionLog | None = None
        self._lookup: Lookup | None = None
        # Loaded partitions; where those are that nobody has used yet; those that get their directories soon; and
        # deleted ones whose directories are renamed soon: (where, log, delay of their removal).
        self._logs: dict[Partition, PartitionLog] = {}
        self._unused: dict[Partition, DataDir] = {}
        # The value is why the last attempt to make the directory failed, None before the first.
        self._to_create: dict[Partition, KafkaError | None] = {}
        self._to_retire: dict[Partition, tuple[DataDir, PartitionLog | None, int]] = {}
        self._dir_of: dict[PartitionLog, DataDir] = {}
        # Partitions that exist and are in none of the directories that can be used.
        self._absent: set[Partition] = set()
        # Of `_unused`: those that could not be loaded at their last use, and why.
        self._not_loaded: dict[Partition, OSError] = {}
        self._scheduler = Scheduler(clock)
        # The recovery points and high watermarks that were written last, by directory.
        self._points_written: dict[DataDir, tuple[dict[Partition, int], dict[Partition, int]]] = {}
        self.cleaner = Cleaner(self, self.home)

    @property
    def on_marker(self) -> list[MarkerHook]:
        """(log, producer_id, producer_epoch, commit, offset) after each transaction marker; group offsets hang on
        it."""
        return self.home.on_marker

    # --- start

    @property
    def dirs(self) -> list[DataDir]:
        """Those of `log.dirs` that can be used."""
        return self.log_dirs.live

    @property
    def failed_dirs(self) -> list[str]:
        """The paths of those that could not be used at this start."""
        return self.log_dirs.failed

    @property
    def metadata_dir(self) -> DataDir:
        """The directory of the metadata log."""
        return self.log_dirs.metadata_dir

    def open_dirs(self, cluster_id: str | None = None) -> str:
        """`LogDirs.open`: lock the directories and learn the cluster id, or write `cluster_id` into empty ones."""
        self.cluster_id = self.log_dirs.open(cluster_id)
        return self.cluster_id

    def open_metadata_log(self) -> PartitionLog:
        """`__cluster_metadata-0` in `metadata.log.dir` (default: the first log dir), recovered; made when missing."""
        data_dir = self.metadata_dir
        path = data_dir.partition_path(CLUSTER_METADATA_TOPIC, 0)
        if not os.path.isdir(path):
            data_dir.make_partition(CLUSTER_METADATA_TOPIC, 0, CLUSTER_METADATA_TOPIC_ID)
        log = PartitionLog(
            self.home, path, CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID, 0, self._metadata_config()
        )
        # Kafka keeps no recovery point for it either; it is short, and its end decides everything.
        recovery.load(log, self.home, recovery.Start(clean=data_dir.was_clean))
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
        """Find every partition directory. `lookup(topic, partition)` gives (topic_id, config, leader_epoch), or None
        when metadata does not know it: the directory is set aside with the suffix `-stray`. After a clean stop nothing
        is read until a partition is used; after a crash every partition is recovered here."""
        self._lookup = lookup
        for data_dir in list(self.dirs):
            self.log_dirs.usable_after(data_dir, partial(self._scan, data_dir, lookup))
        for data_dir in self.dirs:
            if not data_dir.was_clean and data_dir.partitions:
                logger.info("%s: no clean stop, recovering %d partitions", data_dir.path, len(data_dir.partitions))
                for partition in sorted(data_dir.partitions):
                    self.find(*partition)

    def _scan(self, data_dir: DataDir, lookup: Lookup) -> None:
        live, deleted = data_dir.scan()
        for path in deleted:
            self.home.flusher.run(partial(_remove_tree, path))
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
            # A topic that was deleted and made anew while one of the directories could not be used.
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
        """Read a partition's directory; the log is registered once it is whole. Raises KafkaError KAFKA_STORAGE_ERROR:
        while the process is out of descriptors or memory the next use tries again, after any other failure the
        partition is offline until the next start."""
        data_dir = self._unused[partition]
        facts = self._lookup(*partition) if self._lookup is not None else None
        if facts is None:
            del self._unused[partition]
            return None
        failed = self._not_loaded.get(partition)
        if failed is not None and failed.errno not in OUT_OF_RESOURCES:
            raise _not_loaded(partition, failed)
        path = data_dir.partition_path(*partition)
        log = PartitionLog(self.home, path, partition[0], facts[0], partition[1], facts[1])
        log.leader_epoch = facts[2]
        start = recovery.Start(
            clean=data_dir.was_clean,
            start_offset=data_dir.start_offsets.get(partition, 0),
            recovery_point=data_dir.recovery_points.get(partition, 0),
        )
        try:
            self._check_topic_id(data_dir, partition, facts[0])
            recovery.load(log, self.home, start)
        except (OSError, ValueError) as err:
            for segment in log.segments:
                segment.abandon()
            error = err if isinstance(err, OSError) else OSError(errno.EIO, str(err))
            if failed is None or failed.errno != error.errno:  # one line, whatever the number of requests
                logger.error("%s is offline, to be loaded again soon: %s (%s)", log.name, error, path)  # noqa: TRY400
            self._not_loaded[partition] = error
            if error.errno not in OUT_OF_RESOURCES:
                self.home.reopen_wanted()
            raise _not_loaded(partition, error) from err
        self._not_loaded.pop(partition, None)
        del self._unused[partition]
        self._logs[partition] = log
        self._dir_of[log] = data_dir
        return log

    def _check_topic_id(self, data_dir: DataDir, partition: Partition, topic_id: bytes) -> None:
        """A directory of another topic of the same name is set aside, and a fresh one is made in its place."""
        path = data_dir.partition_path(*partition)
        stored = read_topic_id(path)
        if stored is not None and stored != uuid_text(topic_id):
            self._set_aside(data_dir, partition, f"it belongs to the topic id {stored}")
            data_dir.start_offsets.pop(partition, None)
            stored = None
        if stored is None:
            data_dir.make_partition(*partition, topic_id)

    # --- find

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """The log, or None when it is not here, is offline or cannot be loaded now; who must know which asks `get`."""
        log = self._logs.get((topic, partition))
        if log is None:
            try:
                log = self._first_use((topic, partition))
            except KafkaError:
                return None
        return None if log is None or log.is_offline else log

    def get(self, topic: str, partition: int) -> PartitionLog:
        """The log; raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR when it or its directory is
        offline, or when it cannot be loaded or made now."""
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
        """Every online partition; loads those not used yet, one at a time as they are asked for."""
        for partition in self.names():
            log = self.find(*partition)
            if log is not None:
                yield log

    def loaded(self) -> list[PartitionLog]:
        """The online partitions that were used in this life."""
        return [log for log in self._logs.values() if not log.is_offline]

    def dir_of(self, log: PartitionLog) -> DataDir:
        """Where a loaded partition is."""
        return self._dir_of[log]

    def names(self) -> list[Partition]:
        """Every partition that is here, online or not; loads nothing."""
        return [*self._logs, *self._unused, *self._to_create]

    @property
    def offline_count(self) -> int:
        """How many partitions cannot be used: an I/O error, or the directory that holds them failed at the start."""
        return len(self.home.offline) + len(self._absent) + self._unloadable_count

    @property
    def _unloadable_count(self) -> int:
        return sum(err.errno not in OUT_OF_RESOURCES for err in self._not_loaded.values())

    def is_offline(self, topic: str, partition: int) -> bool:
        """Whether the partition is one of `offline_count`; Metadata says that it has no leader."""
        if not self.offline_count:
            return False
        key = (topic, partition)
        log = self._logs.get(key)
        if log is not None:
            return log.is_offline
        failed = self._not_loaded.get(key)
        return key in self._absent or (failed is not None and failed.errno not in OUT_OF_RESOURCES)

    def is_unread(self, topic: str, partition: int) -> bool:
        """Whether the partition is here, and could not be loaded at its last use for want of descriptors or memory."""
        failed = self._not_loaded.get((topic, partition))
        return failed is not None and failed.errno in OUT_OF_RESOURCES

    def mark_absent(self, partitions: Iterable[Partition]) -> None:
        """These exist and are not here: they are in one of `failed_dirs`, and offline until it is back."""
        self._absent.update(partitions)

    def directory_id(self, topic: str, partition: int) -> str:
        """The id of the directory that holds the partition, as text; empty when it is not here."""
        for data_dir in self.dirs:
            if (topic, partition) in data_dir.partitions:
                return data_dir.directory_id
        return ""

    # --- change

    def has(self, topic: str, partition: int) -> bool:
        """Whether the partition is here, online or not, or in a directory that failed; loads nothing."""
        key = (topic, partition)
        return key in self._logs or key in self._unused or key in self._to_create or key in self._absent

    def create(
        self, topic: str, topic_id: bytes, partition: int, config: TopicConfig, leader_epoch: int = 0
    ) -> PartitionLog:
        """Make the partition in the directory with the fewest partitions; an existing one is answered as it is. Raises
        KafkaError KAFKA_STORAGE_ERROR; then its next use tries again."""
        if self.has(topic, partition):
            return self.get(topic, partition)
        return self._make((topic, partition), topic_id, config, leader_epoch)

    def _make(self, key: Partition, topic_id: bytes, config: TopicConfig, leader_epoch: int) -> PartitionLog:
        topic, partition = key
        if key in self._to_retire:
            self._retire_directory(key)  # an older topic of this name
        data_dir = min(self.dirs, key=_partition_count)  # the first of equals
        path = data_dir.partition_path(topic, partition)
        log = PartitionLog(self.home, path, topic, topic_id, partition, config)
        log.leader_epoch = leader_epoch
        try:
            self._forget_older(key)
            if os.path.isdir(path) and read_topic_id(path) != uuid_text(topic_id):
                # What a deletion that failed left there is another topic's data.
                self._set_aside(data_dir, key, "it was left over where a new partition begins")
            data_dir.make_partition(topic, partition, topic_id)
            recovery.load(log, self.home, recovery.Start(clean=True))
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
        """No checkpoint may say anything of an older topic of this name when the new one gets its directory: after a
        crash it would be taken for the new one's start offset, or for how far it is clean. (A recovery point that is
        too high only spares closed segments a scan.) Raises OSError."""
        for data_dir in self.dirs:
            if data_dir.has_entry(checkpoint.LOG_START_OFFSETS, key):
                data_dir.start_offsets.pop(key, None)
                self._write_start_offsets(data_dir, sync=True)
            if data_dir.has_entry(checkpoint.CLEANER_OFFSETS, key):
                data_dir.cleaner_offsets.pop(key, None)
                data_dir.write_offsets(checkpoint.CLEANER_OFFSETS, data_dir.cleaner_offsets, sync=True)

    def create_later(self, partitions: Iterable[Partition]) -> None:
        """These exist from now on; their directories are made at their first use, or by `finish_changes`. Of a crash
        before that the next start makes up for them, as for those whose directories a crash prevented."""
        self._to_create.update(dict.fromkeys(partitions))

    async def finish_changes(self) -> None:
        """Make the directories of the partitions of `create_later` so far, and rename those of deleted ones; the loop
        gets its turn after every `SLICE`. Raises KafkaError KAFKA_STORAGE_ERROR if a directory could not be made; its
        next use tries again."""
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
        if partition not in self._to_create:  # somebody used it first, or it was deleted
            return self._logs.get(partition)
        facts = self._lookup(*partition) if self._lookup is not None else None
        if facts is None:
            del self._to_create[partition]
            return None
        return self._make(partition, *facts)

    def delete(self, topic: str, partition: int, *, later: bool = False) -> None:
        """Close the log, wake its readers, rename its directory to `-delete` (`later`: `finish_changes` does so); its
        files are removed after `file.delete.delay.ms`. The name is free at once. A partition that is not here is no
        error."""
        key = (topic, partition)
        self._absent.discard(key)
        self._to_create.pop(key, None)
        self._not_loaded.pop(key, None)
        log = self._logs.pop(key, None)
        data_dir = self._dir_of.pop(log, None) if log is not None else self._unused.pop(key, None)
        if data_dir is None:
            return
        faults = self.home.faults
        if faults.armed:
            faults.reach("log.before_delete", topic=topic, partition=partition)
        delay_ms = self.config.log_segment_delete_delay_ms
        if log is not None:
            delay_ms = log.config.file_delete_delay_ms
            log.retire()
            self.home.offline.discard(log)
        data_dir.partitions.discard(key)
        data_dir.start_offsets.pop(key, None)
        data_dir.recovery_points.pop(key, None)
        data_dir.cleaner_offsets.pop(key, None)
        self._to_retire[key] = data_dir, log, delay_ms
        if not later:
            self._retire_directory(key)

    def _retire_directory(self, partition: Partition) -> None:
        """Rename the directory of a deleted partition, and have it removed in a while."""
        deleted = self._to_retire.pop(partition, None)
        if deleted is None:  # a new topic of this name came first
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
        self.home.later(delay_ms, partial(_remove_tree, retired))

    def configure(self, topic: str, config: TopicConfig) -> None:
        """A topic's configuration changed."""
        for log in self._logs.values():
            if log.topic == topic:
                log.configure(config)

    def configure_all(self, config_of: Callable[[str], TopicConfig]) -> None:
        """The broker's options changed, and with them those of every topic."""
        for log in self._logs.values():
            log.configure(config_of(log.topic))

    # --- periodic work

    def run_periodically(self) -> None:
        """Set the timers of retention, flush, checkpoints and producer expiry. Needs the running loop (real clock)."""
        config = self.config
        every = self._scheduler.every
        every("retention", config.log_retention_check_interval_ms, self._retain_in_slices)
        every("checkpoint", config.log_flush_offset_checkpoint_interval_ms, self._checkpoint_aside)
        every("expiry", config.producer_id_expiration_check_interval_ms, self._expire_producers_now)
        self.home.flush_wished = self._look_at_flushes
        if self.home.flush_wanted:
            self._look_at_flushes()
        self.home.reopen_wanted = self._reopen_soon
        if self.home.offline or self._unloadable_count:
            self._reopen_soon()
        self.cleaner.schedule()

    def reopen_offline(self) -> bool:
        """Load the partitions anew that went offline or could not be loaded; True when none is left."""
        for partition in [one for one, err in self._not_loaded.items() if err.errno not in OUT_OF_RESOURCES]:
            del self._not_loaded[partition]
            self.find(*partition)
        for log in list(self.home.offline):
            try:
                reopening.reopen(log, self.home)
            except (OSError, ValueError) as err:
                logger.warning("%s stays offline: %s", log.name, err)
        return not self.home.offline and not self._unloadable_count

    def _reopen_soon(self, pause_ms: int = reopening.FIRST_PAUSE_MS) -> None:
        """Try offline partitions again after a pause, which doubles for as long as one stays offline."""

        def look() -> None:
            is_done = self.reopen_offline()
            if not is_done:
                self._reopen_soon(min(2 * pause_ms, reopening.LONGEST_PAUSE_MS))

        if not self._scheduler.is_scheduled("reopen"):
            self._scheduler.after("reopen", pause_ms, look)

    def _look_at_flushes(self) -> None:
        """Look every second, for as long as there is something to look at."""

        def look() -> None:
            self.flush_due(self.clock.now_ms())
            if self.home.flush_wanted:
                self._look_at_flushes()

        if not self._scheduler.is_scheduled("flush"):
            self._scheduler.after("flush", FLUSH_CHECK_MS, look)

    def retain(self, now_ms: int) -> int:
        """Delete what retention allows, in all partitions at once; answers segments deleted."""
        return sum(self._retain_one(log, now_ms) for log in self.all())

    def _retain_one(self, log: PartitionLog, now_ms: int) -> int:
        if log.is_closed or log.is_offline or (len(log.segments) == 1 and log.segments[0].size_bytes == 0):
            return 0
        try:
            return retention.delete_old_segments(log, self.home, now_ms)
        except OSError as err:
            log.fail(err)
            return 0

    def _retain_in_slices(self) -> None:
        """As `retain`, but the loop gets its turn after every `SLICE` partitions."""
        self._scheduler.in_slices("slices of retention", self._slices_of_retention(), pause_ms=1)

    def _slices_of_retention(self) -> Iterator[None]:
        now_ms = self.clock.now_ms()
        for number, log in enumerate(self.all(), 1):
            self._retain_one(log, now_ms)
            if number % SLICE == 0:
                yield

    def flush_due(self, now_ms: int) -> int:
        """Have the partitions synced that `flush.ms` is over for; answers how many."""
        wanted = self.home.flush_wanted
        due = [log for log in wanted if now_ms - log.unflushed_since_ms >= log.config.flush_ms]
        for log in due:
            log.request_flush()
        return len(due)

    def expire_producers(self, now_ms: int) -> int:
        """Forget silent producers; answers how many."""
        return sum(log.producers.expire(now_ms, self.config.producer_id_expiration_ms) for log in self._logs.values())

    def _expire_producers_now(self) -> None:
        self.expire_producers(self.clock.now_ms())

    def checkpoint(self, *, sync: bool = False) -> None:
        """Write recovery points, log start offsets and high watermarks of all directories."""
        for data_dir in self.dirs:
            try:
                self._checkpoint(data_dir, sync=sync)
            except OSError as err:
                logger.warning("the checkpoints of %s cannot be written: %s", data_dir.path, err)

    def _checkpoint(self, data_dir: DataDir, *, sync: bool) -> None:
        _write_points(data_dir, *self._points(data_dir), sync=sync)
        self._write_start_offsets(data_dir, sync=sync)

    def _checkpoint_aside(self) -> None:
        """The checkpoints that may be long, in the flusher's thread, where they changed. Start offsets are written as
        they change."""
        for data_dir in self.dirs:
            points = self._points(data_dir)
            if self._points_written.get(data_dir) != points:
                self.home.flusher.run(partial(self._write_points_aside, data_dir, points))

    def _write_points_aside(self, data_dir: DataDir, points: tuple[dict[Partition, int], dict[Partition, int]]) -> None:
        # In the flusher's thread, which does one at a time.
        self._points_written.pop(data_dir, None)
        _write_points(data_dir, *points, sync=False)
        self._points_written[data_dir] = points

    def _points(self, data_dir: DataDir) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """Recovery points and high watermarks."""
        recovery_points: dict[Partition, int] = {}
        high_watermarks: dict[Partition, int] = {}
        for partition, log in self._logs.items():
            if self._dir_of[log] is data_dir:
                recovery_points[partition] = log.recovery_point
                high_watermarks[partition] = log.log_end_offset
        for partition, home in self._unused.items():
            if home is data_dir:
                # Untouched since the last clean stop, when both were the log's end.
                recovery_points[partition] = high_watermarks[partition] = data_dir.recovery_points.get(partition, 0)
        return recovery_points, high_watermarks

    def _write_start_offsets(self, data_dir: DataDir, *, sync: bool) -> None:
        # As Kafka, only where the files alone would say less.
        offsets = {
            partition: log.log_start_offset
            for partition, log in self._logs.items()
            if self._dir_of[log] is data_dir and log.segments and log.log_start_offset > log.segments[0].base_offset
        }
        for partition, home in self._unused.items():
            if home is data_dir and partition in data_dir.start_offsets:
                offsets[partition] = data_dir.start_offsets[partition]
        data_dir.write_offsets(checkpoint.LOG_START_OFFSETS, offsets, sync=sync)

    def _start_offset_raised(self, log: PartitionLog) -> None:
        # Kafka writes it within a minute, and may forget a DeleteRecords when it dies before; here the answer is kept.
        data_dir = self._dir_of.get(log)
        if data_dir is not None:
            try:
                self._write_start_offsets(data_dir, sync=False)
            except OSError as err:
                raise log.fail(err) from err

    # --- stop

    def stop(self) -> None:
        """Clean stop: flush and close all, write checkpoints, snapshots and the clean-shutdown mark, unlock. Blocks."""
        self._scheduler.stop()
        self.home.flush_wished = self.home.reopen_wanted = nothing
        self.cleaner.stop()
        for partition in list(self._to_retire):
            self._retire_directory(partition)
        self.home.cancel_removals()
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
        self.home.flusher.stop()
        whole = {log for log in closed if not log.is_offline}
        unclean = {self._dir_of.get(log, self.metadata_dir) for log in logs if log not in whole}
        # What was not loaded is as clean as it was, unless an attempt to load it failed half-way.
        unclean.update(
            data_dir
            for partition, data_dir in self._unused.items()
            if not data_dir.was_clean or partition in self._not_loaded
        )
        for log in closed if synced else ():
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
            self.home.flusher.sync_all(paths, [data_dir.path for data_dir in self.dirs]).result()
        except OSError:
            logger.exception("the data directories cannot be synced, the next start will recover them")
            return False
        return True

    # --- describe

    async def describe_dirs(self, wanted: set[Partition] | None = None) -> list[DirStatus]:
        """For DescribeLogDirs: per directory that can be used its path, bytes, and the sizes of its partitions, or of
        those `wanted`. Loads nothing: the files of a partition that nobody has used are asked for their sizes. The loop
        gets its turn after every `SLICE`."""
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
                if data_dir is not None:  # else it was deleted meanwhile
                    found[data_dir].append((*key, _stored_bytes(data_dir.partition_path(*key)), self.is_offline(*key)))
            await sleep(0)
        return [DirStatus(data_dir, partitions) for data_dir, partitions in found.items()]


FLUSH_CHECK_MS = 1000


def _stored_bytes(path: str) -> int:
    """Of the .log files of a partition; 0 when they cannot be asked."""
    try:
        return sum(recovery.list_files(path).values())
    except OSError:
        return 0


def _partition_count(data_dir: DataDir) -> int:
    return len(data_dir.partitions)


def _not_loaded(partition: Partition, err: OSError) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition[0]}-{partition[1]} cannot be loaded: {err}")


def _remove_empty(path: str) -> None:
    """Remove the directory of a partition that could not be made; what else is in it stays. Needs no descriptor."""
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
    # Imported late: with its archive formats it costs milliseconds of every start.
    import shutil

    shutil.rmtree(path, ignore_errors=True)

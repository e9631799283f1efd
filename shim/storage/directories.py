"""Partition directories that requests create and delete, at once or in slices (Kafka: LogManager.getOrCreateLog,
asyncDelete)."""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.line_limit import LineLimit
from kafka_shim.scheduler import Rest, Scheduler, Slice
from kafka_shim.storage import checkpoint, names, recovery
from kafka_shim.storage.data_dir import read_topic_id, remove_tree
from kafka_shim.storage.directory_maker import DirectoryMaker, remove_empty
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.partitions import SLICE, Deleted
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from concurrent.futures import Future

    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.loader import Loader
    from kafka_shim.storage.log_dirs import LogDirs
    from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
    from kafka_shim.storage.partitions import Partitions
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)

# The number of partitions that do not exist yet for which a wanted directory is remembered.
MOST_PREFERRED = 10_000
# The delay after which a directory is renamed again that could not be, and the pause between two of these.
RETIRE_RETRY_MS = 60_000
PAUSE_MS = 1


class PartitionDirectories:
    """Creates and deletes partitions and their directories. Owned by `Logs`."""

    def __init__(
        self,
        partitions: Partitions,
        log_dirs: LogDirs,
        services: LogServices,
        loader: Loader,
        checkpoints: OffsetCheckpoints,
    ) -> None:
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._services = services
        self._loader = loader
        self._checkpoints = checkpoints
        self._scheduler = Scheduler(services.clock)
        self._maker = DirectoryMaker(services.workers)
        self._refusals = LineLimit(logger, services.clock)
        # The log that has the deletions; None without metadata.
        self.metadata_log: PartitionLog | None = None
        # The directories that AlterReplicaLogDirs named for partitions that do not exist yet.
        self.preferred: dict[Partition, DataDir] = {}
        # Whether the checkpoint of recovery points has an entry of an older topic for a new partition.
        self._has_older_point = False
        # Called with each new partition, to record its directory.
        self.placed: Callable[[Partition], None] = _nothing
        # Called with each deleted partition, to end its move.
        self.deleted: Callable[[Partition], None] = _nothing

    # --- create

    def create(self, key: Partition, topic_id: bytes, config: TopicConfig, leader_epoch: int) -> PartitionLog:
        """Create the partition in the directory with the fewest partitions. Raises KafkaError KAFKA_STORAGE_ERROR; the
        next use then tries again."""
        partitions = self._partitions
        topic, partition = key
        data_dir = self._place(key)
        path = data_dir.partition_path(topic, partition)
        log = PartitionLog(self._services, path, topic, topic_id, partition, config)
        log.leader_epoch = leader_epoch
        is_made = self._maker.take(key)
        try:
            if not is_made:
                self._make_way(data_dir, key, topic_id)
            try:
                if not is_made:
                    data_dir.make_partition(topic, partition, topic_id)
                recovery.load(log, self._services, recovery.Start(clean=True))
            except OSError:
                remove_empty(path)
                raise
        except OSError as err:
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} cannot be created: {err}")
            if partitions.to_create.get(key) is None:  # one line, whatever the number of requests
                logger.warning("%s; its next use tries again", error.message)
            partitions.to_create[key] = error
            raise error from err
        partitions.to_create.pop(key, None)
        data_dir.partitions.add(key)
        partitions.add(key, log, data_dir)
        self._has_older_point |= data_dir.has_entry(checkpoint.RECOVERY_POINTS, key)
        self.preferred.pop(key, None)
        self.placed(key)
        return log

    def _make_way(self, data_dir: DataDir, key: Partition, topic_id: bytes) -> None:
        """Rename what an older topic of this name left. Where the system refuses that, the directory stays as it is:
        by its topic id the next start knows that the records are not the new topic's. Raises OSError.

        Blocks for an fsync if the name is used again before the deletion is on the disk, and so before it is
        answered: no directory may be given up whose topic a power cut can bring back."""
        deleted = self._partitions.to_retire.get(key)
        if deleted is not None:
            if not self._is_on_disk(deleted):
                self._flush_deletions(is_urgent=True).result()
            self._retire(key, deleted)
        self._checkpoints.forget_older(key)
        path = data_dir.partition_path(*key)
        if os.path.isdir(path) and read_topic_id(path) != uuid_text(topic_id):
            self._loader.set_aside(data_dir, key, "it was left over where a new partition begins")

    def prefer(self, key: Partition, data_dir: DataDir) -> None:
        """Remember the directory for a partition that does not exist yet; the oldest of too many is forgotten."""
        self.preferred.pop(key, None)
        self.preferred[key] = data_dir
        if len(self.preferred) > MOST_PREFERRED:
            del self.preferred[next(iter(self.preferred))]

    def _place(self, key: Partition) -> DataDir:
        """Return the directory for a new partition: the one that AlterReplicaLogDirs named before, or the one with the
        fewest partitions (the first of equals) of those that are not cordoned. If all are, Kafka takes the first."""
        live = self._log_dirs.live
        preferred = self.preferred.get(key)
        if preferred in live:
            return preferred
        free = [one for one in live if not self._log_dirs.is_cordoned(one)]
        return min(free, key=_partition_count) if free else live[0]

    def create_later(self, keys: Iterable[Partition]) -> None:
        """Register new partitions. Their directories are created at the first use or by `finish_changes`. After a crash
        before that, the next start creates the missing directories."""
        self._partitions.to_create.update(dict.fromkeys(keys))

    def create_now(self, key: Partition) -> PartitionLog | None:
        """Create a partition that `create_later` registered; None if the metadata does not know it any more. Raises as
        `create` does."""
        partitions = self._partitions
        if key not in partitions.to_create:  # it was used or deleted in the meantime
            return partitions.loaded.get(key)
        facts = partitions.lookup(*key) if partitions.lookup is not None else None
        if facts is None:
            del partitions.to_create[key]
            self._maker.undo(key)
            return None
        return self.create(key, *facts)

    async def finish_changes(self, flushed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Create the directories of partitions registered by `create_later`. With `flushed`, which waits until what is
        committed is on the disk, rename then those of partitions whose deletion is there: after a power cut no topic
        may be there whose directory was given up. Yields to the event loop after every slice of them. What could not be
        created is logged: its topic exists even so, and the next use of the partition tries again, or answers
        KAFKA_STORAGE_ERROR. The requests that wait here did what they say, whichever of them the partition belongs to.
        Raises what `flushed` does."""
        partitions = self._partitions
        new = [one for one, failed in partitions.to_create.items() if failed is None]
        for number in range(0, len(new), SLICE):
            some = new[number : number + SLICE]
            places = self._new_places(some) if len(new) > SLICE else None
            if places:
                self._maker.begin(places)
            await self._maker.wait(some)
            await self._in_slices(self.create_now, some)
        if self._has_older_point:
            # After a power cut no file of the new partition counts as whole that is not. Kafka writes it at a deletion.
            self._checkpoints.write_aside(sync=True)
            self._has_older_point = False
        if flushed is None or not partitions.to_retire:
            return
        await flushed()
        await self._in_slices(self.retire, list(partitions.to_retire))

    def _new_places(self, keys: Sequence[Partition]) -> list[tuple[Partition, str, bytes]]:
        """Return the partitions whose directory can be made ahead: there is one place for it, and nothing of an older
        topic of its name is in the way."""
        partitions = self._partitions
        if len(self._log_dirs.live) > 1 or partitions.lookup is None:
            return []
        (data_dir,) = self._log_dirs.live
        places = []
        for key in keys:
            is_new = key in partitions.to_create and partitions.to_create[key] is None and not self._maker.has(key)
            if is_new and key not in partitions.to_retire and not self._checkpoints.has_older(key):
                facts = partitions.lookup(*key)
                if facts is not None:
                    places.append((key, data_dir.partition_path(*key), facts[0]))
        return places

    async def _in_slices(self, step: Callable[[Partition], object], some: Iterable[Partition]) -> None:
        part, rest = Slice(self._services.clock, SLICE), Rest(self._services.clock)
        for partition in some:
            with suppress(KafkaError):
                step(partition)
            if part.is_over():
                await rest.after(part.taken_us())
                part.begin()

    # --- delete

    def delete(self, key: Partition, delay_ms: int, *, later: bool) -> None:
        """Delete a partition: close the log, wake its readers, rename its directory to `-delete`. With `later`,
        `finish_changes` renames it. The files are removed after `delay_ms`, or the topic's `file.delete.delay.ms` if
        the partition is loaded. The name can be reused at once. Does nothing if the partition does not exist."""
        partitions = self._partitions
        self.deleted(key)
        partitions.absent.discard(key)
        partitions.to_create.pop(key, None)
        self._maker.undo(key)
        partitions.not_loaded.pop(key, None)
        partitions.damaged.discard(key)
        log = partitions.loaded.get(key)
        data_dir = partitions.unused.get(key) if log is None else partitions.dir_of[log]
        if data_dir is not None:
            self._take_out(key, log, data_dir, delay_ms, later=later)
        if not later:
            self.retire(key)

    def _take_out(
        self, key: Partition, log: PartitionLog | None, data_dir: DataDir, delay_ms: int, *, later: bool
    ) -> None:
        """Make a partition unknown. After a MemoryError it can be called again: the last steps need no memory."""
        partitions = self._partitions
        faults = self._services.faults
        if faults.armed:
            faults.reach("log.before_delete", topic=key[0], partition=key[1])
        if log is not None:
            delay_ms = log.config.file_delete_delay_ms
            log.retire()
            self._services.offline.discard(log)
        data_dir.partitions.discard(key)
        data_dir.start_offsets.pop(key, None)
        data_dir.recovery_points.pop(key, None)
        data_dir.cleaner_offsets.pop(key, None)
        end_offset = self.metadata_log.log_end_offset if later and self.metadata_log is not None else 0
        retired = f"{data_dir.path}/{names.retired_name(*key, names.DELETE_DIR, self._services.clock.random)}"
        partitions.to_retire[key] = Deleted(data_dir, log, delay_ms, retired, end_offset)
        if log is None:
            del partitions.unused[key]
        else:
            del partitions.loaded[key]
            del partitions.dir_of[log]

    def _is_on_disk(self, deleted: Deleted) -> bool:
        """Whether no power cut can bring back the topic of this directory."""
        return self.metadata_log is None or self.metadata_log.recovery_point >= deleted.end_offset

    def retire(self, key: Partition) -> None:
        """Rename the directory of a deleted partition and schedule its removal, once the deletion is on the disk. Tried
        again later if there is no memory for it or the system refuses it."""
        deleted = self._partitions.to_retire.get(key)
        if deleted is None or not self._is_on_disk(deleted):
            return
        try:
            self._retire(key, deleted)
        except (MemoryError, OSError) as err:
            self._scheduler.after("retire", RETIRE_RETRY_MS, self._retire_again)
            self._refusals.write("%s-%d cannot be renamed for deletion now, and is tried again: %r", *key, err)

    def recover(self) -> None:
        """Go on with renames for which there was no memory, and none for their timer either, or whose deletion could
        not be fsynced. Called periodically."""
        to_retire = self._partitions.to_retire
        waits = self._scheduler.is_scheduled("retire") or self._scheduler.is_scheduled("retire in slices")
        if not to_retire or waits:
            return
        if not all(map(self._is_on_disk, to_retire.values())):
            with suppress(OSError):  # until the log is opened again
                self._flush_deletions()  # for the next call
        self._retire_again()

    def _flush_deletions(self, *, is_urgent: bool = False) -> Future[None]:
        """Request the fsync of all deletions; `is_urgent`: the event loop stands still until then. Raises OSError while
        the metadata log is offline."""
        log = self.metadata_log
        assert log is not None
        log.check_sync()
        if log.is_offline:
            raise OSError(errno.EIO, f"{log.name} is offline, and may not have the deletion of the topic before")
        return log.request_flush(is_urgent=is_urgent)

    def _retire_again(self) -> None:
        self._scheduler.in_slices("retire in slices", map(self.retire, list(self._partitions.to_retire)), PAUSE_MS)

    def _retire(self, key: Partition, deleted: Deleted) -> None:
        """As `retire`, once, of a deletion that is on the disk. Raises OSError if the system refuses the new name."""
        with suppress(FileNotFoundError):  # renamed by an attempt that found no memory, or removed by somebody else
            os.rename(deleted.data_dir.partition_path(*key), deleted.retired)
        if deleted.log is not None:
            deleted.log.moved(deleted.retired)
        self._services.removals.after(deleted.delay_ms, partial(remove_tree, deleted.retired))
        del self._partitions.to_retire[key]

    def retire_all(self) -> None:
        """Rename the directories of all deleted partitions, at a stop, when everything that can be is on the disk."""
        self._maker.stop()
        for key in list(self._partitions.to_retire):
            self.retire(key)
        self._scheduler.stop()
        self._refusals.close()


def _nothing(key: Partition) -> None:
    pass


def _partition_count(data_dir: DataDir) -> int:
    return len(data_dir.partitions)

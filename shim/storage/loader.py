"""From directories to logs: the scan at a start, and the first use of a partition (Kafka: LogManager.loadLogs)."""

from __future__ import annotations

import errno
import logging
import os
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage import names, recovery
from kafka_shim.storage.data_dir import read_topic_id, remove_tree
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.results import StorageError
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.log_dirs import LogDirs
    from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
    from kafka_shim.storage.partitions import Lookup, Partitions
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)


class Loader:
    """Finds the partition directories at a start, and loads a partition at its first use. Owned by `Logs`."""

    def __init__(
        self, partitions: Partitions, log_dirs: LogDirs, services: LogServices, checkpoints: OffsetCheckpoints
    ) -> None:
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._services = services
        self._checkpoints = checkpoints
        # Returns the id of the directory that the metadata records for a partition, or an empty string.
        self.assigned: Callable[[Partition], str] = _unknown
        # Partitions that were moving at the last stop, with the directory that they go to.
        self.unfinished: dict[Partition, DataDir] = {}

    def find_directories(self, lookup: Lookup) -> None:
        """Find every partition directory. One whose partition is not in the metadata is renamed with the suffix
        `-stray`. Raises CancelledError if the start was given up."""
        partitions = self._partitions
        for data_dir in list(self._log_dirs.live):
            self._is_usable_after(data_dir, partial(self._scan, data_dir, lookup))
        self._adopt_futures(lookup)
        # Last: a stop after a refused start must not write checkpoints of what was found so far.
        partitions.lookup = lookup

    def _is_usable_after(self, data_dir: DataDir, step: Callable[[], object]) -> bool:
        """Returns whether the directory can be used after the step, and else forgets what was found in it. Raises
        StorageError."""
        if self._log_dirs.usable_after(data_dir, step):
            return True
        partitions = self._partitions
        partitions.unused = {one: where for one, where in partitions.unused.items() if where is not data_dir}
        partitions.damaged &= partitions.unused.keys()
        self.unfinished = {one: where for one, where in self.unfinished.items() if where is not data_dir}
        return False

    def _scan(self, data_dir: DataDir, lookup: Lookup) -> None:
        live, deleted = data_dir.scan()
        for path in deleted:
            self._services.flusher.run(partial(remove_tree, path))
        for partition in live:
            self._services.go_on()  # to set aside tens of thousands of directories takes long
            self._found(data_dir, partition, lookup)

    def _found(self, data_dir: DataDir, partition: Partition, lookup: Lookup) -> None:
        topic, number = partition
        path = data_dir.partition_path(topic, number)
        facts = lookup(topic, number)
        if facts is None:
            self.set_aside(data_dir, partition, "the metadata does not know it")
            return
        first = self._partitions.unused.get(partition)
        if first is not None:
            # The topic was deleted and created again while one of the directories could not be used.
            wanted = uuid_text(facts[0])
            if read_topic_id(path) not in (None, wanted):
                self.set_aside(data_dir, partition, "it belongs to another topic of that name")
                return
            if read_topic_id(first.partition_path(topic, number)) in (None, wanted):
                # A power failure kept one rename of a move and lost the other.
                assigned = self.assigned(partition)
                if assigned == first.directory_id:
                    self.set_aside(data_dir, partition, f"the metadata says that {first.path} holds it")
                    return
                if assigned == data_dir.directory_id:
                    self.set_aside(first, partition, f"the metadata says that {data_dir.path} holds it")
                    first.partitions.discard(partition)
                    data_dir.partitions.add(partition)
                    self._partitions.unused[partition] = data_dir
                    return
                raise StorageError(f"{topic}-{number} is in two data directories: {path} is the second")
            self.set_aside(first, partition, "it belongs to another topic of that name")
            first.partitions.discard(partition)
        data_dir.partitions.add(partition)
        self._partitions.unused[partition] = data_dir

    def _adopt_futures(self, lookup: Lookup) -> None:
        """Look at the copies of partitions that were moving at the last stop. A complete one, whose source was given up
        already, takes its place (Kafka: recoverAbandonedFutureLogs). The others are `unfinished`: the move goes on."""
        partitions = self._partitions
        for data_dir in list(self._log_dirs.live):
            copies = [(partition, path) for partition, paths in data_dir.futures.items() for path in paths]
            for partition, path in copies:
                if data_dir not in self._log_dirs.live:
                    break
                self._services.go_on()
                facts = lookup(*partition)
                if facts is None or read_topic_id(path) != uuid_text(facts[0]):
                    logger.warning("%s is ignored: the metadata does not know its topic id", path)
                elif partition not in partitions.unused:
                    self._adopt(data_dir, partition, path)
                elif partitions.unused[partition] is data_dir:
                    self._services.flusher.run(partial(remove_tree, path))
                else:
                    self.unfinished[partition] = data_dir

    def _adopt(self, data_dir: DataDir, partition: Partition, path: str) -> None:
        """Give the copy of a partition its name, if the move had given up the source. While a directory of `log.dirs`
        cannot be used, the source may be there, unless the metadata names this directory."""
        assigned = self.assigned(partition)
        if assigned != data_dir.directory_id and (assigned or self._log_dirs.failed):
            return
        rename = partial(os.rename, path, data_dir.partition_path(*partition))
        if self._is_usable_after(data_dir, rename):
            logger.info("%s-%d: its move to %s is completed", *partition, data_dir.path)
            data_dir.partitions.add(partition)
            self._partitions.unused[partition] = data_dir
            self._partitions.damaged.add(partition)  # its indexes were not closed

    def set_aside(self, data_dir: DataDir, partition: Partition, reason: str) -> None:
        """Rename a partition directory with the suffix `-stray`. Raises OSError."""
        stray = names.retired_name(*partition, names.STRAY_DIR, self._services.clock.random)
        path = data_dir.partition_path(*partition)
        os.rename(path, f"{data_dir.path}/{stray}")
        logger.warning("%s was set aside as %s: %s", path, stray, reason)

    def load(self, partition: Partition) -> PartitionLog | None:
        """Load a partition from its directory and register its log; None if the metadata does not know it any more.
        Raises KafkaError KAFKA_STORAGE_ERROR. If the process lacks descriptors or memory, the next use tries again.
        After any other error the partition is offline until `reopen_offline` or the next start loads it."""
        partitions = self._partitions
        data_dir = partitions.unused[partition]
        facts = partitions.lookup(*partition) if partitions.lookup is not None else None
        if facts is None:
            del partitions.unused[partition]
            return None
        failed = partitions.not_loaded.get(partition)
        if failed is not None and failed.errno not in OUT_OF_RESOURCES:
            raise _not_loaded(partition, failed)
        path = data_dir.partition_path(*partition)
        log = PartitionLog(self._services, path, partition[0], facts[0], partition[1], facts[1])
        log.leader_epoch = facts[2]
        try:
            # First: the checkpoints of an older topic of this name do not hold for the new one.
            self._check_topic_id(data_dir, partition, facts[0])
            start = recovery.Start(
                clean=data_dir.was_clean and partition not in partitions.damaged,
                start_offset=data_dir.start_offsets.get(partition, 0),
                recovery_point=data_dir.recovery_points.get(partition, 0),
            )
            recovery.load(log, self._services, start)
        except (OSError, ValueError) as err:
            for segment in log.segments:
                segment.abandon()
            error = err if isinstance(err, OSError) else OSError(errno.EIO, str(err))
            if failed is None or failed.errno != error.errno:  # one line, whatever the number of requests
                logger.error("%s is offline, to be loaded again soon: %s (%s)", log.name, error, path)  # noqa: TRY400
            partitions.not_loaded[partition] = error
            if error.errno not in OUT_OF_RESOURCES:
                partitions.damaged.add(partition)
                self._services.reopen_wanted()
            raise _not_loaded(partition, error) from err
        partitions.not_loaded.pop(partition, None)
        partitions.damaged.discard(partition)
        del partitions.unused[partition]
        partitions.add(partition, log, data_dir)
        if log.recovery_point < log.log_end_offset:
            log.want_flush_of_rest()
        return log

    def _check_topic_id(self, data_dir: DataDir, partition: Partition, topic_id: bytes) -> None:
        """Rename the directory as stray if its topic id is not `topic_id`, and create a new one in its place."""
        path = data_dir.partition_path(*partition)
        stored = read_topic_id(path)
        if stored is not None and stored != uuid_text(topic_id):
            # Also on the disk, and first: the start after a kill would read them for the new topic, and find it empty.
            self._checkpoints.forget_older(partition)
            data_dir.recovery_points.pop(partition, None)
            self.set_aside(data_dir, partition, f"it belongs to the topic id {stored}")
            stored = None
        if stored is None:
            data_dir.make_partition(*partition, topic_id)


def _unknown(partition: Partition) -> str:
    return ""


def _not_loaded(partition: Partition, err: OSError) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition[0]}-{partition[1]} cannot be loaded: {err}")

"""The offset checkpoints of all data directories: what they hold and when they are written (Kafka: LogManager). Their
format is in `checkpoint`."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from itertools import chain

from kafka_shim.storage import checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.errors import KafkaError
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.flusher import Flusher
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.log_dirs import LogDirs
    from kafka_shim.storage.partitions import Partitions
    from kafka_shim.storage.services import LogStart

logger = logging.getLogger(__name__)

Points = tuple[dict["Partition", int], dict["Partition", int]]


class OffsetCheckpoints:
    """Recovery points, high watermarks and log start offsets of all partitions. Owned by `Logs`."""

    def __init__(self, partitions: Partitions, log_dirs: LogDirs, flusher: Flusher) -> None:
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._flusher = flusher
        # The recovery points and high watermarks that were last written, by directory.
        self._written: dict[DataDir, Points] = {}
        # In `raising_together`: the partitions whose start was raised, with what it was, by directory.
        self._raised: dict[DataDir, list[tuple[PartitionLog, LogStart]]] | None = None
        # Returns the partitions that move to a directory. Their start offsets are stored before they are there.
        self.arriving: Callable[[DataDir], list[Partition]] = _none

    def write(self, data_dir: DataDir, *, sync: bool) -> None:
        """Write the checkpoints of one directory, while the flusher thread does not: at a stop. Raises OSError."""
        _write_points(data_dir, self._points(data_dir), sync=sync)
        self.write_start_offsets(data_dir, sync=sync)

    def write_aside(self, *, sync: bool = False) -> None:
        """Write the recovery point and high watermark checkpoints that changed, in the flusher thread, because they may
        be long. Only there: two threads must not write one temporary file. Log start offsets are written when they
        change."""
        for data_dir in self._log_dirs.live:
            points = self._points(data_dir)
            if self._written.get(data_dir) != points:
                self._flusher.run(partial(self._write_points_aside, data_dir, points, sync=sync))

    def _write_points_aside(self, data_dir: DataDir, points: Points, *, sync: bool) -> None:
        # Runs in the flusher thread, which runs one task at a time.
        self._written.pop(data_dir, None)
        _write_points(data_dir, points, sync=sync)
        self._written[data_dir] = points

    def _points(self, data_dir: DataDir) -> Points:
        """Return the recovery points and the high watermarks of all partitions in a directory."""
        partitions = self._partitions
        recovery_points: dict[Partition, int] = {}
        high_watermarks: dict[Partition, int] = {}
        for partition, log in partitions.loaded.items():
            if partitions.dir_of[log] is data_dir:
                recovery_points[partition] = log.recovery_point
                high_watermarks[partition] = log.log_end_offset
        for partition, where in partitions.unused.items():
            if where is data_dir:
                # Not used since the last clean stop, when both were equal to the log end offset.
                recovery_points[partition] = high_watermarks[partition] = data_dir.recovery_points.get(partition, 0)
        return recovery_points, high_watermarks

    def write_start_offsets(self, data_dir: DataDir, *, sync: bool) -> None:
        """Write the log start offsets of one directory, with those of partitions that move to it. They are fsynced
        before this returns, or later without `sync`. Raises OSError."""
        # As in Kafka, an entry is written only if the start offset is above that of the first segment's files.
        partitions = self._partitions
        offsets = {
            partition: log.log_start_offset
            for partition, log in partitions.loaded.items()
            if partitions.dir_of[log] is data_dir and log.segments and log.log_start_offset > log.oldest_offset
        }
        for partition, where in partitions.unused.items():
            if where is data_dir and partition in data_dir.start_offsets:
                offsets[partition] = data_dir.start_offsets[partition]
        for partition in self.arriving(data_dir):
            if partition in data_dir.start_offsets:
                offsets[partition] = data_dir.start_offsets[partition]
        data_dir.write_offsets(checkpoint.LOG_START_OFFSETS, offsets, sync=sync)
        if not sync:
            # Not every file system stores the bytes before the name: the file in its place had them on the disk.
            self._flusher.sync_later([f"{data_dir.path}/{checkpoint.LOG_START_OFFSETS}"])

    def start_offset_raised(self, log: PartitionLog, before: LogStart) -> None:
        """Write the checkpoint of log start offsets after DeleteRecords, or at the end of `raising_together`. Raises
        KafkaError KAFKA_STORAGE_ERROR."""
        # Kafka writes this checkpoint once a minute and may lose an acknowledged DeleteRecords in a crash. Here it is
        # written before the response.
        data_dir = self._partitions.dir_of.get(log)
        if data_dir is None:
            return
        if self._raised is not None:
            self._raised.setdefault(data_dir, []).append((log, before))
            return
        try:
            self._write_raised(data_dir, [log])
        except OSError as err:
            raise log.fail(err) from err

    @contextmanager
    def raising_together(self) -> Iterator[dict[PartitionLog, KafkaError]]:
        """What DeleteRecords raises in this context is written at its end, once for each directory, because the file
        has the starts of all partitions. Gives a table that has, after that, the errors of the partitions whose start
        is as before, because it could not be written. No other task may run meanwhile."""
        raised: dict[DataDir, list[tuple[PartitionLog, LogStart]]] = {}
        failed: dict[PartitionLog, KafkaError] = {}
        self._raised = raised
        try:
            yield failed
            for data_dir in list(raised):
                logs = [log for log, _ in raised[data_dir]]
                try:
                    self._write_raised(data_dir, logs)
                except OSError as err:
                    failed.update((log, log.fail(err)) for log in logs)
                else:
                    del raised[data_dir]
        finally:
            self._raised = None
            for log, before in chain.from_iterable(map(reversed, raised.values())):  # a log may be there twice
                log.take_back_start(before)

    def _write_raised(self, data_dir: DataDir, logs: list[PartitionLog]) -> None:
        self.write_start_offsets(data_dir, sync=False)
        for log in logs:
            logger.info("%s: log start offset is %d after DeleteRecords", log.name, log.log_start_offset)

    def has_older(self, key: Partition) -> bool:
        """Whether `forget_older` would have to write for the partition."""
        files = (checkpoint.LOG_START_OFFSETS, checkpoint.CLEANER_OFFSETS)
        return any(data_dir.has_entry(name, key) for data_dir in self._log_dirs.live for name in files)

    def forget_older(self, key: Partition) -> None:
        """Remove the checkpoint entries of an older topic with this name before the new directory is created.
        Otherwise, after a crash, they would be read as the new partition's start offset or cleaner offset. Its recovery
        point says that files are on the disk: `write_aside` replaces it once the partition is there. Raises OSError."""
        for data_dir in self._log_dirs.live:
            if data_dir.has_entry(checkpoint.LOG_START_OFFSETS, key):
                data_dir.start_offsets.pop(key, None)
                self.write_start_offsets(data_dir, sync=True)
            if data_dir.has_entry(checkpoint.CLEANER_OFFSETS, key):
                data_dir.cleaner_offsets.pop(key, None)
                data_dir.write_offsets(checkpoint.CLEANER_OFFSETS, data_dir.cleaner_offsets, sync=True)


def _none(data_dir: DataDir) -> list[Partition]:
    return []


def _write_points(data_dir: DataDir, points: Points, *, sync: bool) -> None:
    recovery_points, high_watermarks = points
    data_dir.write_offsets(checkpoint.RECOVERY_POINTS, recovery_points, sync=sync)
    data_dir.write_offsets(checkpoint.HIGH_WATERMARKS, high_watermarks, sync=sync)

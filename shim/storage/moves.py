"""Moves of partitions between the directories of `log.dirs`, while they are written and read (Kafka:
ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread, LogManager.replaceCurrentWithFutureLog).

A move copies in slices. When the copy has everything, it is fsynced, and in one turn of the loop the rest is copied,
the metadata records the new directory, the old one is renamed with the suffix `-delete`, and the new one gets the
partition's name. A crash at any step leaves either the old directory, or a complete copy that the metadata names: the
next start of this broker or of Kafka takes that (`Loader.find_directories`; Kafka: recoverAbandonedFutureLogs).
"""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from functools import partial

from kafka_shim.errors import KafkaError
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage import checkpoint, names
from kafka_shim.storage.data_dir import remove_tree
from kafka_shim.storage.future_log import FutureLog
from kafka_shim.storage.open_files import out_of_memory
from kafka_shim.storage.results import StorageError
from kafka_shim.storage.segments import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.cleaner import Cleaner
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.offset_checkpoints import OffsetCheckpoints
    from kafka_shim.storage.partitions import Partitions
    from kafka_shim.storage.services import LogServices

logger = logging.getLogger(__name__)

# The dynamic option that bounds the bytes that moves copy in a second.
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
SLICE_BYTES = 1 << 20
# After how many fsyncs of a copy that is appended to meanwhile the last one is waited for on the loop.
MOST_FSYNCS = 5
PAUSE_MS = 1
FLUSH_PAUSE_MS = 5
CLEANER_PAUSE_MS = 20
FIRST_RETRY_MS = 1000
LONGEST_RETRY_MS = 60_000


class _Move:
    """One move: the copy, whether it has to start over (memory ended while it was made, or its new beginning failed),
    the fsync under way, how often it had to be tried, whether the metadata may name the target, and the name that the
    source has if it could not get its own back. Once the copy serves `left` is where the source was, and its name,
    until that is done with."""

    __slots__ = ("fsyncing", "fsyncs", "future", "is_in_doubt", "is_named", "left", "retired", "retry_ms")

    def __init__(self, future: FutureLog) -> None:
        self.future = future
        self.is_in_doubt = False
        self.is_named = False
        self.fsyncing: Future[None] | None = None
        self.fsyncs = 0
        self.retired = ""
        self.left: tuple[DataDir, str] | None = None
        self.retry_ms = 0

    def begin_anew(self) -> None:
        """Drop the copy and begin with an empty one. Raises OSError; then it is to be called again, before anything is
        copied into what lacks its topic id."""
        self.is_in_doubt = True
        self.fsyncs = 0
        self.future.begin()
        self.is_in_doubt = False


class Moves:
    """The moves under way, by partition. Owned by `Logs`. Event-loop thread only."""

    def __init__(
        self, partitions: Partitions, services: LogServices, checkpoints: OffsetCheckpoints, cleaner: Cleaner
    ) -> None:
        self._partitions = partitions
        self._services = services
        self._checkpoints = checkpoints
        self._cleaner = cleaner
        self._scheduler = Scheduler(services.clock)
        self._moves: dict[Partition, _Move] = {}
        # Called with (partition, directory id) to record where a partition is. Raises KafkaError.
        self.assign: Callable[[Partition, str], None] = _nowhere
        # The log that has these records; None without metadata.
        self.metadata_log: PartitionLog | None = None

    def target_of(self, key: Partition) -> DataDir | None:
        """Return the directory that the partition moves to, or None if it does not move."""
        move = self._moves.get(key)
        return None if move is None else move.future.data_dir

    def futures(self) -> list[FutureLog]:
        """Return the copies of all moves under way."""
        return [move.future for move in self._moves.values()]

    def arriving(self, data_dir: DataDir) -> list[Partition]:
        """Return the partitions that move to a directory."""
        return [key for key, move in self._moves.items() if move.future.data_dir is data_dir and move.left is None]

    def start(self, log: PartitionLog, target: DataDir) -> None:
        """Begin to move a partition. Raises OSError if the copy's directory cannot be made."""
        key = (log.topic, log.partition)
        suffix = f".{self._services.clock.random.bytes_of(16).hex()}{names.FUTURE_DIR}"
        future = FutureLog(log, target, f"{target.partition_path(*key)}{suffix}")
        try:
            future.begin()
        except (OSError, MemoryError):
            self.give_up(key, target, future.directory)
            raise
        self._moves[key] = _Move(future)
        self._cleaner.paused.add(log)
        logger.info("%s moves from %s to %s", log.name, self._partitions.dir_of[log].path, target.path)
        self._scheduler.after(_task(key), PAUSE_MS, self._step, key)

    def cancel(self, key: Partition) -> None:
        """End the move of a partition, if there is one, and remove the copy. Raises OSError and KafkaError if the copy
        is all that has a name, or that the metadata names."""
        move = self._moves.get(key)
        if move is None:
            return
        if move.left is not None:
            self._finish(key, move, move.left)
            return
        if not move.future.source.is_closed:
            self._put_back(key, move)
        self._forget(key)
        future = move.future
        self.give_up(key, future.data_dir, future.directory)
        logger.info("%s does not move to %s any more", future.source.name, future.data_dir.path)

    def give_up(self, key: Partition, data_dir: DataDir, copy: str) -> None:
        """Remove a copy, or what there is of it. First it loses its name: after a kill nothing may take it for the copy
        of a later move."""
        retired = f"{data_dir.path}/{names.retired_name(*key, names.DELETE_DIR, self._services.clock.random)}"
        try:
            os.rename(copy, retired)
        except FileNotFoundError:
            return
        except OSError as err:
            logger.warning("%s cannot be renamed for deletion: %s", copy, err)
            retired = copy
        self._services.flusher.run(partial(remove_tree, retired))

    def recover(self) -> None:
        """Go on with moves whose next step has no timer: there was no memory for it. Called periodically."""
        for key in self._moves:
            if not self._scheduler.is_scheduled(_task(key)):
                self._scheduler.after(_task(key), PAUSE_MS, self._step, key)

    def stop(self) -> None:
        """Stop all moves at the broker's stop. The next start goes on with them."""
        self._scheduler.stop()
        for key, move in list(self._moves.items()):
            if move.left is not None:
                with suppress(MemoryError):  # the next start finds where the partition is
                    self._finish(key, move, move.left)
            self._forget(key)

    def _forget(self, key: Partition) -> _Move | None:
        move = self._moves.pop(key, None)
        if move is not None:
            self._scheduler.cancel(_task(key))
            self._cleaner.paused.discard(move.future.source)
        return move

    # --- one step

    def _step(self, key: Partition) -> None:
        move = self._moves[key]
        name = move.future.source.name
        try:
            pause_ms = self._go_on(key, move)
        except StorageError as err:
            logger.error("%s is not moved: %s", name, err)  # noqa: TRY400 the reason says it all
            self.cancel(key)
            return
        except Exception as err:
            # A directory that is full or fails for a while: clients notice nothing, and the move goes on later.
            if isinstance(err, MemoryError):
                move.is_in_doubt = True
            if not move.retry_ms:
                reason = str(err) or "there is no memory"
                is_known = isinstance(err, (OSError, KafkaError, MemoryError))
                path = move.future.data_dir.path
                logger.warning("%s cannot be moved to %s now: %s", name, path, reason, exc_info=not is_known)
            move.retry_ms = min(max(2 * move.retry_ms, FIRST_RETRY_MS), LONGEST_RETRY_MS)
            pause_ms = move.retry_ms
        if key in self._moves:
            self._scheduler.after(_task(key), pause_ms, self._step, key)

    def _go_on(self, key: Partition, move: _Move) -> int:
        """Copy one slice, or complete the move. Returns the pause in ms until the next step."""
        future = move.future
        log = future.source
        if move.left is not None:
            self._finish(key, move, move.left)
            return 0
        self._put_back(key, move)
        if log.is_closed:  # deleted; `cancel` comes too
            self.cancel(key)
            return 0
        if log.is_offline:
            return FIRST_RETRY_MS
        if self._cleaner.is_cleaning(log):
            return CLEANER_PAUSE_MS
        if move.is_in_doubt or future.is_stale or not os.path.isdir(future.directory):
            move.begin_anew()
        if move.fsyncing is not None:
            if not move.fsyncing.done():
                return FLUSH_PAUSE_MS
            error = move.fsyncing.exception()
            move.fsyncing = None
            if error is not None:
                # After a failed fsync the pages may be lost: nothing short of writing them again is proof.
                move.begin_anew()
                raise error
        copied = future.copy(SLICE_BYTES)
        if copied:
            move.retry_ms = 0
        # Not after every copied byte: of a partition that is appended to all the time there is always one.
        throttled_ms = copied * 1000 // self._rate if self._rate else 0
        if copied >= SLICE_BYTES or throttled_ms > PAUSE_MS:
            return max(PAUSE_MS, throttled_ms)
        if future.has_unsynced and move.fsyncs < MOST_FSYNCS:
            move.fsyncs += 1
            move.fsyncing = self._services.flusher.sync_later(future.take_unsynced())
            return FLUSH_PAUSE_MS
        self._complete(key, move)
        return 0

    @property
    def _rate(self) -> int:
        """The bytes that a move may copy in a second; 0 without a limit."""
        return int(self._services.config.dynamic.get(THROTTLE, 0))

    # --- the end of a move

    def _complete(self, key: Partition, move: _Move) -> None:
        """Put the copy in the place of its source. Raises OSError and KafkaError; then the source still serves."""
        future = move.future
        log, target = future.source, future.data_dir
        source_dir = self._partitions.dir_of[log]
        faults = self._services.faults
        future.complete()
        # Little: what was appended since the last fsync, the indexes of the active segment, and the names of the files.
        try:
            self._services.flusher.sync_now([*future.take_unsynced(), future.directory])
        except OSError:
            move.begin_anew()  # for the reason above
            raise
        if log.log_start_offset > log.segments[0].base_offset:
            target.start_offsets[key] = log.log_start_offset
            self._checkpoints.write_start_offsets(target, sync=True)
        if faults.armed:
            faults.reach("move.before_assign", topic=log.topic, partition=log.partition)
        live = target.partition_path(*key)
        retired = f"{source_dir.path}/{names.retired_name(*key, names.DELETE_DIR, self._services.clock.random)}"
        left = source_dir, retired
        move.is_named = True
        try:
            self.assign(key, target.directory_id)
            if faults.armed:
                faults.reach("move.after_assign", topic=log.topic, partition=log.partition)
            segments = [self._copy_of(segment, live) for segment in log.segments]
            # A start takes the copy, and removes the source, because of this record: a power cut must not take it back.
            if self.metadata_log is not None:
                self.metadata_log.flush()
            os.rename(log.directory, retired)
            try:
                if faults.armed:
                    faults.reach("move.between_renames", topic=log.topic, partition=log.partition)
                os.rename(future.directory, live)
            except Exception as err:
                self._undo(log, move, retired, err)
                raise
        except Exception:
            if not move.retired:
                self._put_back(key, move)
            raise
        # Nothing comes in between that needs memory: what is written from here on belongs to the copy.
        old, log.segments, log.directory = log.segments, segments, live
        self._partitions.dir_of[log], move.left = target, left
        try:
            self._replaced(log, old)
        except MemoryError:
            log.fail(out_of_memory(), torn=True)  # once it is opened again, it is whole
        self._finish(key, move, left)

    def _finish(self, key: Partition, move: _Move, left: tuple[DataDir, str]) -> None:
        """End a move whose copy serves. After a MemoryError it is to be called again."""
        source_dir, retired = left
        log, target = move.future.source, move.future.data_dir
        self._sync_renames([target.path, source_dir.path])
        self._move_entries(key, source_dir, target)
        self._services.removals.after(log.config.file_delete_delay_ms, partial(remove_tree, retired))
        self._forget(key)
        logger.info("%s moved from %s to %s", log.name, source_dir.path, target.path)

    def _sync_renames(self, directories: list[str]) -> None:
        """fsync the names before anything is appended to the copy: a power failure that took both renames back would
        leave the source, without what was acknowledged since (Kafka: atomicMoveWithFallback)."""
        try:
            self._services.flusher.sync_now(directories)
        except OSError as err:
            logger.warning("the renames of a move are not on the disk yet: %s", err)
            self._services.flusher.sync_later(directories)

    def _undo(self, log: PartitionLog, move: _Move, retired: str, reason: Exception) -> None:
        """Give the source its name back. If that fails too, take the partition offline until `_put_back` can: the
        metadata still names the target, so that a start takes the copy, and nothing may be acknowledged that the copy
        has not."""
        move.retired = retired
        try:
            os.rename(retired, log.directory)
        except (OSError, MemoryError):
            if not isinstance(reason, OSError):
                reason = out_of_memory() if isinstance(reason, MemoryError) else OSError(errno.EIO, str(reason))
            log.fail(reason, torn=True)
        else:
            move.retired = ""

    def _put_back(self, key: Partition, move: _Move) -> None:
        """Give the source its name back, on the disk and in the metadata, as far as it lacks it. Raises OSError and
        KafkaError."""
        log = move.future.source
        if move.retired and not os.path.isdir(log.directory):
            os.rename(move.retired, log.directory)
        if move.is_named:
            self.assign(key, self._partitions.dir_of[log].directory_id)
        move.is_named, move.retired = False, ""

    def _replaced(self, log: PartitionLog, old: list[Segment]) -> None:
        """The log uses the segments of the copy, which are equal to its own. What refers to the old files may go on
        reading them."""
        for segment in old:
            segment.abandon()
        log.epochs.moved(log.directory)
        log.content_changed()
        log.producers.snapshot_offset = log.producers.next_offset
        log.recovery_point = log.log_end_offset  # everything was fsynced

    def _copy_of(self, segment: Segment, directory: str) -> Segment:
        copy = Segment(directory, segment.base_offset, self._services.files, segment.created_ms)
        copy.size_bytes = segment.size_bytes
        copy.bytes_since_index = segment.bytes_since_index
        copy.first_timestamp_ms = segment.first_timestamp_ms
        copy.max_timestamp_ms = segment.max_timestamp_ms
        copy.max_timestamp_offset = segment.max_timestamp_offset
        return copy

    def _move_entries(self, key: Partition, source_dir: DataDir, target: DataDir) -> None:
        """Move the partition's entries in the tables and checkpoints. They are written again periodically, so an error
        is only logged."""
        target.partitions.add(key)
        source_dir.partitions.discard(key)
        if key in source_dir.cleaner_offsets:
            target.cleaner_offsets[key] = source_dir.cleaner_offsets[key]
            del source_dir.cleaner_offsets[key]
        for offsets in (source_dir.start_offsets, source_dir.recovery_points, target.start_offsets):
            offsets.pop(key, None)
        for data_dir in (target, source_dir):
            try:
                self._checkpoints.write_start_offsets(data_dir, sync=False)
                if key in target.cleaner_offsets:
                    data_dir.write_offsets(checkpoint.CLEANER_OFFSETS, data_dir.cleaner_offsets, sync=False)
            except OSError as err:
                logger.warning("the checkpoints of %s cannot be written: %s", data_dir.path, err)
        self._checkpoints.write_aside()


def _task(key: Partition) -> str:
    return f"move {key[0]}-{key[1]}"


def _nowhere(key: Partition, directory_id: str) -> None:
    """Record nothing: there is no metadata (tools, tests)."""

"""The copy of a partition in the directory that it moves to, `TOPIC-PARTITION.ID-future` (Kafka: the future log of
ReplicaAlterLogDirsThread).

The files are copied as they are, segment by segment, and only whole batches. So a Kafka that opens the directory in the
middle of a move finds a log that it can recover and go on with.
"""

from __future__ import annotations

import os
from contextlib import suppress

from kafka_shim.cext.segment import append
from kafka_shim.storage import names, producer_snapshot
from kafka_shim.storage.data_dir import PARTITION_METADATA, remove_tree, write_topic_id
from kafka_shim.storage.epochs import LeaderEpochs
from kafka_shim.storage.results import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.data_dir import DataDir
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.segments import Segment

# The longest single read. A longer batch is copied in one piece.
CHUNK_BYTES = 256 * 1024
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class FutureLog:
    """The copy of `source` in `data_dir`. Owned by `Moves`. Event-loop thread only.

    `next_offset` (exclusive) is how far the copy goes, `size_bytes` the size of its .log files."""

    __slots__ = (
        "_bases",
        "_is_torn",
        "_position",
        "_segment",
        "_sync_round",
        "_unsynced",
        "data_dir",
        "directory",
        "next_offset",
        "size_bytes",
        "source",
    )

    def __init__(self, source: PartitionLog, data_dir: DataDir, directory: str) -> None:
        # fixed
        self.source = source
        self.data_dir = data_dir
        self.directory = directory
        self._reset()

    def _reset(self) -> None:
        # The segment that is being copied, and how far; the base offsets of all segments copied or begun.
        self._segment: Segment | None = None
        self._position = 0
        self._bases: list[int] = []
        self._unsynced: set[str] = set()
        # Whether a part of a batch that was not copied could not be cut off.
        self._is_torn = False
        # A reopened source may have lost its end: what was copied before is not valid then.
        self._sync_round = self.source.sync_round
        self.next_offset = self.source.log_start_offset
        self.size_bytes = 0

    def begin(self) -> None:
        """Create the directory, empty. Also starts over after an error. Raises OSError."""
        if os.path.isdir(self.directory):
            for _ in remove_tree(self.directory):
                pass
        self._reset()
        os.makedirs(self.directory, exist_ok=True)
        write_topic_id(self.directory, self.source.topic_id)
        self._unsynced.add(f"{self.directory}/{PARTITION_METADATA}")

    @property
    def is_stale(self) -> bool:
        """Whether the copy is not valid: a failed write could not be cut off, or the source was opened again after an
        I/O error since the copy began."""
        return self._is_torn or self._sync_round != self.source.sync_round

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind its source."""
        return max(self.source.log_end_offset - self.next_offset, 0)

    # --- copy

    def copy(self, limit_bytes: int) -> int:
        """Copy up to about `limit_bytes`. Returns how many bytes were copied; 0 if the copy has all that the source
        has. Raises OSError; the copy is then as before, or `is_stale`. Raises StorageError if the source has an invalid
        batch."""
        copied = 0
        while copied < limit_bytes:
            segment = self._current()
            if self._position < segment.size_bytes:
                copied += self._copy_batches(segment)
            elif segment is self.source.active:
                break
            else:
                self._copy_facts(segment)
                self._begin_segment(self._after(segment))
        return copied

    def _current(self) -> Segment:
        """Return the segment to copy from. Skips those that retention removed from the source."""
        segments = self.source.segments
        current = self._segment
        if current is None:
            return self._begin_segment(segments[0])
        if current in segments:
            return current
        self._remove(current.base_offset)
        return self._begin_segment(self._after(current))

    def _after(self, segment: Segment) -> Segment:
        return next(one for one in self.source.segments if one.base_offset > segment.base_offset)

    def _begin_segment(self, segment: Segment) -> Segment:
        # Empty index files, because Kafka logs an error for a .log file without them.
        for name in (names.LOG, names.INDEX, names.TIME_INDEX):
            path = self._path(segment.base_offset, name)
            os.close(os.open(path, NEW_FILE, 0o666))
            self._unsynced.add(path)
        self._segment = segment
        self._position = 0
        self._bases.append(segment.base_offset)
        return segment

    def _copy_batches(self, segment: Segment) -> int:
        position = end_position = self._position
        next_offset = self.next_offset
        for batch in segment.walk(position, check_crc=True):
            if end_position > position and batch.end_position - position > CHUNK_BYTES:
                break
            end_position = batch.end_position
            next_offset = batch.next_offset
        if end_position == position:
            raise StorageError(f"{segment.path(names.LOG)}: no valid batch at position {position}")
        content = segment.read(position, end_position - position)
        path = self._path(segment.base_offset, names.LOG)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            try:
                append(fd, (content,))
            except OSError:
                self._is_torn = True
                os.ftruncate(fd, position)
                self._is_torn = False
                raise
        finally:
            os.close(fd)
        self._unsynced.add(path)
        self._position = end_position
        self.next_offset = next_offset
        self.size_bytes += len(content)
        return len(content)

    def _copy_facts(self, segment: Segment) -> None:
        """Copy the indexes of a segment and the producer snapshot at its base offset."""
        for name in (names.INDEX, names.TIME_INDEX, names.TXN_INDEX):
            self._copy_file(segment.path(name), self._path(segment.base_offset, name))
        snapshot = names.file_name(segment.base_offset, names.SNAPSHOT)
        self._copy_file(f"{self.source.directory}/{snapshot}", f"{self.directory}/{snapshot}")

    def _copy_file(self, source: str, target: str) -> None:
        try:
            with open(source, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return
        fd = os.open(target, NEW_FILE, 0o666)
        try:
            append(fd, (content,))
        finally:
            os.close(fd)
        self._unsynced.add(target)

    # --- the end

    @property
    def has_unsynced(self) -> bool:
        """Whether `take_unsynced` has any."""
        return bool(self._unsynced)

    def take_unsynced(self) -> list[str]:
        """Return the files that changed since the last call and must be fsynced before the copy takes its place, or be
        written again."""
        paths = sorted(self._unsynced)
        self._unsynced.clear()
        return paths

    def complete(self) -> None:
        """Add what belongs to the end of the log: the indexes of the active segment, the producer snapshot at the log
        end offset, the leader epochs. Removes segments that retention removed meanwhile. Everything is copied already.
        Raises OSError."""
        log = self.source
        active = log.active
        with suppress(OSError):  # the source may be full: the indexes are sparser then, and as right
            active.store_indexes()
        self._copy_facts(active)
        present = {segment.base_offset for segment in log.segments}
        for base_offset in [one for one in self._bases if one not in present]:
            self._remove(base_offset)
        if log.producers.next_offset > 0:
            path = self._path(log.producers.next_offset, names.SNAPSHOT)
            producer_snapshot.write(path, list(log.producers.entries.values()), sync=False)
            self._unsynced.add(path)
        epochs = LeaderEpochs(self.directory)
        epochs.entries = log.epochs.entries
        epochs.save()
        self._unsynced.add(epochs.path)

    def _remove(self, base_offset: int) -> None:
        with suppress(ValueError):
            self._bases.remove(base_offset)
        for name in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT):
            path = self._path(base_offset, name)
            self._unsynced.discard(path)
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self.directory}/{names.file_name(base_offset, suffix)}"

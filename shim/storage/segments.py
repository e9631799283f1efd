"""One segment of a partition: its .log file, its indexes, and the rules when to roll (Kafka: LogSegment)."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from struct import Struct
from struct import error as StructError

from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.batch import HEADER_SIZE, Verdict
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.segment import Walk, find_batch, read
from kafka_shim.storage import names
from kafka_shim.storage.index import (
    MAX_RELATIVE_OFFSET,
    OFFSET_ENTRY,
    TIME_ENTRY,
    WRITE_CHUNK_BYTES,
    OffsetIndex,
    TimeIndex,
)
from kafka_shim.storage.segment_files import SegmentFiles
from kafka_shim.storage.txn_index import TxnIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kafka_shim.cext.batch import Batch
    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.open_files import OpenFiles
    from kafka_shim.storage.txn_index import Aborted

NO_TIMESTAMP = -1
# Where the header of a batch has its greatest timestamp.
MAX_TIMESTAMP = slice(35, 43)
# The begin of a message of magic 0 or 1: offset, size of what follows, which begins with the CRC of the rest.
OLD_HEAD = Struct(">qiI")
OLD_CRC_BYTES = 4


class Segment(SegmentFiles):
    """The batches from `base_offset` to the base offset of the next segment. Owned by its `PartitionLog`; event-loop
    thread only.

    The files are created at the first append. The descriptor and the indexes are opened at their first use (see
    `segment_files`)."""

    __slots__ = ("created_ms",)

    def __init__(self, directory: str, base_offset: int, files: OpenFiles, created_ms: int, suffix: str = "") -> None:
        super().__init__(directory, base_offset, files, suffix)
        # Facts about the contents; None: not yet read from the files.
        self.created_ms = created_ms
        self.bytes_since_index = 0
        self.first_timestamp_ms = None
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        # Roll limits, computed from the configuration `_limits_of`; None: not computed yet.
        self._limits_of = None

    # --- indexes

    def has_damaged_index(self) -> bool:
        """Whether one of the two indexes of this segment is damaged. Raises OSError for errors other than EIO."""
        try:
            offsets, times = self.offset_index, self.time_index
            return offsets.is_cut or times.is_cut or times.last[1] < 0
        except OSError as err:
            if err.errno != errno.EIO:
                raise
            return True

    def attach(self, size_bytes: int) -> None:
        """Take over an existing .log file of this size. Other facts are read from the files at their first use."""
        self.size_bytes = size_bytes
        if size_bytes:
            self.max_timestamp_ms = None

    def store_indexes(self) -> None:
        """Write all index entries to their files. The last time index entry is the segment's maximum timestamp, as in
        Kafka."""
        if not self.size_bytes and self._offset_index is None:
            return
        timestamp_ms, offset = self.max_timestamp()
        self._limits_of = None
        self.time_index.maybe_add(timestamp_ms, offset - self.base_offset)
        self.offset_index.store()
        self.time_index.store()

    def close(self) -> None:
        """Store the indexes and close all files. Raises OSError."""
        if self._offset_index is not None or self._time_index is not None or self._has_unstored_facts():
            self.store_indexes()
        self._require_closed_well()
        self.close_file()
        self._drop_indexes()

    def _has_unstored_facts(self) -> bool:
        # A segment that was found at the start and never used has none. If its index file is missing, the indexes are
        # written even if empty, because Kafka would rebuild them at its start, which is slow.
        if not self.size_bytes:
            return False
        return self.max_timestamp_ms is not None or not os.path.exists(self.path(names.INDEX))

    # --- append

    def is_full(
        self, size_bytes: int, max_timestamp_ms: int, last_offset: int, config: TopicConfig, now_ms: int
    ) -> bool:
        """Whether a batch of `size_bytes` that ends at `last_offset` must go to a new segment."""
        size = self.size_bytes
        if size > config.segment_bytes - size_bytes or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if size == 0:
            return False
        if self._limits_of is not config:
            self._set_limits(config)
        if self._is_index_full:
            return True
        first_ms = self.first_timestamp_ms
        if first_ms is not None and first_ms >= 0:  # what `waited_ms` answers, without the call
            return max_timestamp_ms - first_ms > self._longest_wait_ms
        return self.waited_ms(max_timestamp_ms, now_ms) > self._longest_wait_ms

    def _set_limits(self, config: TopicConfig) -> None:
        """Compute the limits of `is_full` and `append_plain`. They depend only on the configuration and the indexes."""
        limit_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms
        self._longest_wait_ms = limit_ms - self._jitter_ms(config)
        self._most_bytes, self._interval_bytes = config.segment_bytes, config.index_interval_bytes
        self._most_index_bytes = config.segment_index_bytes
        self._is_index_full = _are_full(self.offset_index, self.time_index, config)
        self._limits_of = config

    def waited_ms(self, max_timestamp_ms: int, now_ms: int) -> int:
        """Return the age in ms that `segment.ms` is compared with: by record timestamps if there are any (as in Kafka),
        else the time since the segment was created."""
        if self.first_timestamp_ms is None and self.size_bytes:
            header = read(self.fd, 0, HEADER_SIZE)
            self.first_timestamp_ms = max_timestamp_of(header) if len(header) == HEADER_SIZE else NO_TIMESTAMP
        if self.first_timestamp_ms is not None and self.first_timestamp_ms >= 0:
            return max_timestamp_ms - self.first_timestamp_ms
        return now_ms - self.created_ms

    def _jitter_ms(self, config: TopicConfig) -> int:
        bound = min(config.segment_jitter_ms, config.segment_ms)
        # The jitter is derived from the path, not random, so a segment rolls at the same time after a restart.
        return crc32c(self.path("").encode()) % bound if bound > 0 else 0

    def append(
        self, buffers: Sequence[Any], size_bytes: int, last_offset: int, max_timestamp_ms: int, interval_bytes: int
    ) -> None:
        """Append one batch and index it. If it raises OSError, the file is truncated to its old size and the state in
        memory is unchanged."""
        # Every step that can fail comes before the write. After the write the batch must count.
        position = self.size_bytes
        known_ms = self.max_timestamp_ms
        if known_ms is None:
            known_ms = self.max_timestamp()[0]
        must_index = self.bytes_since_index > interval_bytes
        if must_index:
            self._load_indexes()
        fd = self.fd  # last, because opening other files may have closed it to stay within the budget
        try:
            cext_segment.append(fd, buffers)
        except BaseException:
            self._cut_back(position)
            raise
        if self.first_timestamp_ms is None and position == 0:
            self.first_timestamp_ms = max_timestamp_ms
        if max_timestamp_ms > known_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = last_offset
        self.size_bytes = position + size_bytes
        if must_index:
            self._index(last_offset, position)
        self.bytes_since_index += size_bytes

    def _cut_back(self, position: int) -> None:
        """Truncate the file after a failed write. Raises EIO if that fails, because the file may then contain a batch
        whose append was refused."""
        try:
            os.ftruncate(self.fd, position)
        except OSError as err:
            reason = f"what a failed write left cannot be cut at position {position}: {err.strerror}"
            raise OSError(errno.EIO, reason, self.path(names.LOG)) from err

    def _load_indexes(self) -> None:
        if self._offset_index is None or self._time_index is None or not self._time_index.tail:
            self.offset_index, self.time_index.last  # noqa: B018  (loads them)

    def _index(self, last_offset: int, position: int) -> None:
        config: Any = self._limits_of
        self._limits_of = None
        try:
            offsets = self.offset_index
            offsets.add(last_offset - self.base_offset, position)
            times = self.time_index
            times.maybe_add(self.max_timestamp()[0], self.max_timestamp_offset - self.base_offset)
        except (OSError, ValueError, StructError):
            # The batch is in the log. An index entry that could not be stored stays in memory and is stored later. One
            # too far above the base offset, which compaction copies (`rebuild`), has none.
            return
        self.bytes_since_index = 0
        if config is not None:  # else all limits are computed at the next append
            self._is_index_full = _are_full(offsets, times, config)
            self._limits_of = config

    # --- read

    def find(self, offset: int, from_position: int = 0) -> tuple[int, int, int, int] | None:
        """Return (position, size, base offset, last offset) of the first batch whose last offset is >= `offset`, or
        None."""
        position = self.offset_index.lookup(offset - self.base_offset)[1] if offset > self.base_offset else 0
        return find_batch(self.fd, from_position if from_position > position else position, self.size_bytes, offset)

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of the stored bytes, fewer only at the end of the file. Raises OSError."""
        return read(self.fd, position, size_bytes)

    def walk(self, position: int = 0, *, check_crc: bool = False, next_offset: int | None = None) -> Walk:
        """Iterate over the batches from `position`, which must be the start of a batch."""
        start = self.base_offset if next_offset is None else next_offset
        self._files.keep(self)
        return Walk(self.fd, position, self.size_bytes, check_crc, start)

    def max_timestamp(self) -> tuple[int, int]:
        """Return (greatest timestamp, last offset of the batch with it), or (-1, base offset) if there is none."""
        if self.max_timestamp_ms is None:
            timestamp_ms, relative = self.time_index.last
            self.max_timestamp_ms = timestamp_ms
            self.max_timestamp_offset = self.base_offset + relative
        return self.max_timestamp_ms, self.max_timestamp_offset

    def largest_timestamp_ms(self) -> int:
        """Return the greatest record timestamp, or the file's modification time if records have none. Used by
        retention."""
        timestamp_ms = self.max_timestamp()[0]
        if timestamp_ms >= 0:
            return timestamp_ms
        try:
            return os.stat(self.path(names.LOG)).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return self.created_ms

    def read_end(self) -> tuple[int, bool]:
        """Return the offset after the last batch (`base_offset` if the segment is empty), and whether the file ends
        with that batch. Reads from the last index entry on."""
        next_offset = self.base_offset
        index = self.offset_index
        walk = Walk(self.fd, index.at(index.count - 1)[1] if index.count else 0, self.size_bytes, False, 0)
        for batch in walk:
            next_offset = batch.next_offset
        return next_offset, walk.position == self.size_bytes

    # --- repair

    def cut_refused(self, end_offset: int) -> None:
        """Truncate the file of an abandoned active segment after `end_offset`. The bytes there belong to appends that
        were refused, and recovery must not load them. Raises OSError."""
        path = self.path(names.LOG)
        try:
            size_bytes = os.stat(path).st_size
        except FileNotFoundError:
            return
        try:
            found = self.find(end_offset)
        finally:
            self.abandon()
        position = self.size_bytes if found is None else found[0]
        if size_bytes > position:
            os.truncate(path, position)

    def rebuild(
        self,
        interval_bytes: int,
        on_batch: Callable[[Batch], Aborted | None],
        before_cut: Callable[[], None],
        *,
        sync: bool,
    ) -> int:
        """Scan all batches and verify their CRCs, truncate the file at the first invalid batch, rebuild the indexes.
        `on_batch` is called with each valid batch before the next one is read, and returns the aborted transaction
        that it ends. `before_cut` is called if there is something to truncate. The caller stores the other two indexes
        (`store_rebuilt`). `sync`: the index of aborted transactions is on the disk before they are. Returns the number
        of bytes cut. Raises OSError, also for messages of an old format: nothing is wrong with them."""
        self._limits_of = None
        # A start rebuilds a segment without .index. So it goes first and is written last, and whatever comes between
        # leaves the sign that the others are not done.
        with suppress(FileNotFoundError):
            os.unlink(self.path(names.INDEX))
        # The old index entries are discarded, damaged or not.
        self._offset_index = OffsetIndex.empty(self.path(names.INDEX), self._files)
        self._time_index = TimeIndex.empty(self.path(names.TIME_INDEX), self._files)
        aborted: list[Aborted] = []
        self.max_timestamp_ms, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self.bytes_since_index = 0
        last_entry = 0
        walk = self.walk(check_crc=True)
        for batch in walk:
            if batch.max_timestamp > self.max_timestamp()[0]:
                self.max_timestamp_ms, self.max_timestamp_offset = batch.max_timestamp, batch.last_offset
            # An offset too far above the base offset (written by a bug of old Kafka versions) cannot be indexed; reads
            # find it by scanning.
            if (
                batch.position - last_entry > interval_bytes
                and batch.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
            ):
                self.offset_index.hold(batch.last_offset - self.base_offset, batch.position)
                self.time_index.maybe_add(self.max_timestamp()[0], self.max_timestamp_offset - self.base_offset)
                last_entry = batch.position
            if (ended := on_batch(batch)) is not None:
                aborted.append(ended)
        cut_bytes = self.size_bytes - walk.position
        if cut_bytes:
            if walk.verdict is Verdict.BAD_MAGIC and self._is_old_message(walk.position):
                reason = "messages of a format before Kafka 0.11 cannot be read, and are left as they are"
                raise OSError(errno.ENOTSUP, reason, self.path(names.LOG))
            before_cut()
            self.cut(walk.position)
        self._txn_index = TxnIndex.rebuilt(self.path(names.TXN_INDEX), self._files, aborted, sync=sync)
        self.bytes_since_index = self.size_bytes - last_entry
        return cut_bytes

    def _is_old_message(self, position: int) -> bool:
        """Whether a whole message of magic 0 or 1 is there: offset, size, CRC-32 of what follows, magic."""
        from zlib import crc32

        at = position + OLD_HEAD.size
        if at > self.size_bytes:
            return False
        _, size_bytes, expected = OLD_HEAD.unpack(self.read(position, OLD_HEAD.size))
        end = at - OLD_CRC_BYTES + size_bytes
        if end > self.size_bytes:
            return False
        crc = 0
        for first in range(at, end, WRITE_CHUNK_BYTES):
            crc = crc32(self.read(first, min(end - first, WRITE_CHUNK_BYTES)), crc)
        return bool(crc == expected)

    def store_rebuilt(self) -> None:
        """Write the indexes that `rebuild` has left in memory, .index last. Raises OSError."""
        timestamp_ms, offset = self.max_timestamp()
        self.time_index.maybe_add(timestamp_ms, offset - self.base_offset)
        self.time_index.store()
        self.offset_index.replace()

    def cut(self, position: int) -> None:
        """Truncate the .log file to `position` bytes. The caller truncates the indexes."""
        os.ftruncate(self.fd, position)
        self.size_bytes = position


def _are_full(offsets: OffsetIndex, times: TimeIndex, config: TopicConfig) -> bool:
    limit = config.segment_index_bytes
    return offsets.count >= limit // OFFSET_ENTRY.size or times.count >= limit // TIME_ENTRY.size - 1


def max_timestamp_of(header: bytes | bytearray | memoryview) -> int:
    """Return the greatest timestamp that the header of a batch says, in ms."""
    return int.from_bytes(header[MAX_TIMESTAMP], "big", signed=True)

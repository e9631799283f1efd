"""The leader epochs of one partition with their start offsets (KIP-101; Kafka: LeaderEpochFileCache)."""

from __future__ import annotations

import os

from kafka_shim.cext.log_base import EpochsBase
from kafka_shim.storage import checkpoint, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN = (-1, -1)


class LeaderEpochs(EpochsBase):
    """(epoch, start_offset) pairs, both ascending, stored in the file `leader-epoch-checkpoint`.

    A change replaces the file without an fsync, which survives a crash of the process. After a power failure, recovery
    restores the epochs from the batches; a clean stop has the file on the disk. What ended before the log start offset
    stays in the file until the next change or a clean stop: recovery leaves it out, and to replace the file at each
    deleted segment would hold the event loop up for as long as a slow disk writes (Kafka:
    truncateFromStartAsyncFlush)."""

    __slots__ = ("_directory", "_entries", "_is_saved")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        # The newest epoch, -1 when there is none: every append asks for it.
        self.latest = -1
        self._entries: list[tuple[int, int]] = []
        # Whether the file has all changes.
        self._is_saved = True

    @property
    def path(self) -> str:
        """The path of the file."""
        return os.path.join(self._directory, names.LEADER_EPOCHS)

    @property
    def entries(self) -> list[tuple[int, int]]:
        """The pairs. A change assigns another list."""
        return self._entries

    @entries.setter
    def entries(self, entries: list[tuple[int, int]]) -> None:
        self._entries = entries
        self.latest = entries[-1][0] if entries else -1

    def load(self) -> None:
        """Read the file. If it is missing, there are no epochs. Raises CheckpointError."""
        path = self.path
        try:
            self.entries = [(int(epoch), int(offset)) for epoch, offset in checkpoint.read_lines(path, 2)]
        except ValueError as err:
            raise checkpoint.CheckpointError(f"{path}: {err}") from err

    def moved(self, directory: str) -> None:
        """Update the path after the partition's directory was renamed."""
        self._directory = directory

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch that starts at `start_offset`. Removes later and overlapping entries. After an OSError nothing
        is changed."""
        if self.entries and self.entries[-1][0] == epoch and self.entries[-1][1] <= start_offset:
            return
        before = self.entries
        kept = [entry for entry in before if entry[0] < epoch and entry[1] < start_offset]
        self.entries = [*kept, (epoch, start_offset)]
        try:
            self.save()
        except OSError:
            self.entries = before
            raise

    def take_over(self, found: Iterable[tuple[int, int]]) -> None:
        """Have those of these pairs, in the order of their offsets, whose epochs ascend. The file is replaced later: a
        full disk must not keep what was stored from its readers."""
        entries: list[tuple[int, int]] = []
        for epoch, offset in found:
            if epoch > (entries[-1][0] if entries else -1):
                entries.append((epoch, offset))
        self.entries = entries
        self._is_saved = not entries

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that start at or after `end_offset`. Raises OSError."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if len(kept) != len(self.entries):
            self.entries = kept
            self.save()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that ended before `start_offset`. The epoch that contains it then starts there. The file is
        replaced later."""
        older = [entry for entry in self.entries if entry[1] <= start_offset]
        if older and (len(older) > 1 or older[-1][1] < start_offset):
            self.entries = [(older[-1][0], start_offset), *self.entries[len(older) :]]
            self._is_saved = False

    def clear(self) -> None:
        """Remove all epochs. Raises OSError."""
        if self.entries:
            self.entries = []
            self.save()

    def at(self, offset: int) -> int:
        """Return the epoch of the record at `offset`, or -1 if it is unknown."""
        found = -1
        for epoch, start_offset in self.entries:
            if start_offset > offset:
                break
            found = epoch
        return found

    def end_offset_for(self, epoch: int, log_end_offset: int, current_epoch: int) -> tuple[int, int]:
        """Return (epoch, end_offset) for OffsetForLeaderEpoch: the greatest known epoch that is not above `epoch`, and
        the offset after its last record. `current_epoch` is that of the leader; without a record it begins at the
        end of the log. Clients have epochs without a record from ListOffsets. Returns `UNKNOWN` if `epoch` is -1 or
        above all of these."""
        if epoch == -1 or epoch > max(self.latest, current_epoch):
            return UNKNOWN
        if epoch in (self.latest, current_epoch):
            return epoch, log_end_offset
        higher = next((start for known, start in self.entries if known > epoch), log_end_offset)
        floor = [known for known, _ in self.entries if known <= epoch]
        return (floor[-1] if floor else epoch), higher

    def close(self) -> None:
        """Replace the file if it lacks a change. Raises OSError."""
        if not self._is_saved:
            self.save()

    def save(self) -> None:
        """Replace the file. Does nothing if the directory is gone, because the partition is being deleted. Raises
        OSError."""
        try:
            checkpoint.write_lines(self.path, (f"{epoch} {offset}" for epoch, offset in self.entries), sync=False)
        except FileNotFoundError:
            if os.path.isdir(self._directory):
                raise
        self._is_saved = True

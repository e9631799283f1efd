"""Leader epochs of one partition and where each began (KIP-101; Kafka: LeaderEpochFileCache)."""

from __future__ import annotations

import os

from kafka_shim.storage import checkpoint

FILE_NAME = "leader-epoch-checkpoint"
UNKNOWN = (-1, -1)


class LeaderEpochs:
    """(epoch, start_offset) pairs, both ascending, kept in the file `leader-epoch-checkpoint`.

    The file is replaced, not synced, at each change: it survives the death of the process, and after a power loss
    recovery finds the epochs again in the batches."""

    __slots__ = ("_directory", "entries")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.entries: list[tuple[int, int]] = []

    def load(self) -> None:
        """Read the file; a missing one leaves no epochs. Raises CheckpointError."""
        path = os.path.join(self._directory, FILE_NAME)
        try:
            self.entries = [(int(epoch), int(offset)) for epoch, offset in checkpoint.read_lines(path, 2)]
        except ValueError as err:
            raise checkpoint.CheckpointError(f"{path}: {err}") from err

    def moved(self, directory: str) -> None:
        """The partition's directory was renamed."""
        self._directory = directory

    @property
    def latest(self) -> int:
        """The newest epoch, -1 when there is none."""
        return self.entries[-1][0] if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """`epoch` begins at `start_offset`; later and overlapping entries give way. Raises OSError; then all is as
        before."""
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

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if len(kept) != len(self.entries):
            self.entries = kept
            self.save()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before `start_offset`; the one that holds it begins there."""
        older = [entry for entry in self.entries if entry[1] <= start_offset]
        if older and older[-1][1] < start_offset:
            self.entries = [(older[-1][0], start_offset), *self.entries[len(older) :]]
            self.save()
        elif len(older) > 1:
            self.entries = self.entries[len(older) - 1 :]
            self.save()

    def clear(self) -> None:
        """Forget all."""
        if self.entries:
            self.entries = []
            self.save()

    def at(self, offset: int) -> int:
        """The epoch of the record at `offset`, -1 when unknown."""
        found = -1
        for epoch, start_offset in self.entries:
            if start_offset > offset:
                break
            found = epoch
        return found

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end_offset) as OffsetForLeaderEpoch answers: the greatest known epoch not above `epoch` and the
        offset after its last record; `UNKNOWN` for one never seen that is above all."""
        if epoch == -1:
            return UNKNOWN
        if epoch == self.latest:
            return epoch, log_end_offset
        higher = next((entry for entry in self.entries if entry[0] > epoch), None)
        if higher is None:
            return UNKNOWN
        floor = [entry for entry in self.entries if entry[0] <= epoch]
        return (floor[-1][0] if floor else epoch), higher[1]

    def save(self) -> None:
        """Replace the file; does nothing when the directory is gone (a deletion under way)."""
        path = os.path.join(self._directory, FILE_NAME)
        try:
            checkpoint.write_lines(path, (f"{epoch} {offset}" for epoch, offset in self.entries), sync=False)
        except FileNotFoundError:
            if os.path.isdir(self._directory):
                raise

"""Reads a whole data directory without a broker and says what is wrong with it: batches with their CRCs and offsets,
indexes against the log, producer snapshots, checkpoints. Changes nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import pairwise

from kafka_shim.cext.batch import Verdict
from kafka_shim.cext.segment import Walk
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.plurals import counted
from kafka_shim.storage import checkpoint, names, producer_snapshot
from kafka_shim.storage.checkpoint import CheckpointError
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN, META_PROPERTIES, DataDir
from kafka_shim.storage.dump import Dump, Options
from kafka_shim.storage.results import StorageError
from kafka_shim.storage.txn_index import TxnIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# DAMAGE: bytes or facts are lost or contradict each other. REPAIRED: the next start puts it right by itself.
DAMAGE, REPAIRED = "damage", "repaired at the next start"
METADATA = (CLUSTER_METADATA_TOPIC, 0)
# Where a batch's header has its length, which counts the bytes after it.
LENGTH_AT, LENGTH_SIZE = 8, 4


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `severity` is DAMAGE or REPAIRED."""

    severity: str
    path: str
    text: str


@dataclass(slots=True)
class Report:
    """What was read and found. `was_clean`: the last stop was."""

    directory: str
    was_clean: bool = False
    partitions: int = 0
    segments: int = 0
    batches: int = 0
    read_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_damaged(self) -> bool:
        return any(one.severity == DAMAGE for one in self.findings)


def check_directory(path: str, progress: Callable[[int], None] = lambda read_bytes: None) -> Report:
    """Checks a data directory that no broker has open; the caller holds its lock. `progress` is called with the bytes
    that were read since its last call. Raises OSError if the directory itself cannot be read."""
    data_dir = DataDir(path)
    report = Report(data_dir.path, was_clean=os.path.exists(f"{data_dir.path}/{CLEAN_SHUTDOWN}"))
    check = _Check(report, progress)
    folders = check.identity(data_dir)
    ends = {}
    for name in folders:
        partition = names.partition_of(name)
        assert partition is not None
        report.partitions += 1
        ends[partition] = check.partition(f"{data_dir.path}/{name}")
    check.metadata(f"{data_dir.path}/{METADATA[0]}-{METADATA[1]}", ends)
    for name in (checkpoint.RECOVERY_POINTS, checkpoint.LOG_START_OFFSETS, checkpoint.CLEANER_OFFSETS):
        check.offsets(f"{data_dir.path}/{name}", ends)
    return report


def log_bytes(path: str) -> int:
    """The bytes of all segments: what `check_directory` reads. Raises OSError."""
    return sum(
        entry.stat().st_size
        for folder in os.scandir(path)
        if folder.is_dir() and names.partition_of(folder.name) is not None
        for entry in os.scandir(folder.path)
        if entry.name.endswith(names.LOG)
    )


def _has_batch_after(path: str, walk: Walk, size_bytes: int) -> bool:
    """Whether a whole batch follows the one where `walk` stopped, as long as its header says: no crash in the middle of
    a write leaves that."""
    with open(path, "rb") as file:
        file.seek(walk.position + LENGTH_AT)
        length = int.from_bytes(file.read(LENGTH_SIZE), signed=True)
        position = walk.position + LENGTH_AT + LENGTH_SIZE + length
        if length < 0 or position >= size_bytes:
            return False
        return any(True for _ in Walk(file.fileno(), position, size_bytes, True, walk.next_offset))


class _Check:
    def __init__(self, report: Report, progress: Callable[[int], None]) -> None:
        self._report = report
        self._progress = progress

    def _damage(self, path: str, text: str) -> None:
        self._report.findings.append(Finding(DAMAGE, path, text))

    def _repaired(self, path: str, text: str) -> None:
        self._report.findings.append(Finding(REPAIRED, path, text))

    def identity(self, data_dir: DataDir) -> list[str]:
        """Checks what names the directory. Returns the folders of partitions."""
        path = f"{data_dir.path}/{META_PROPERTIES}"
        try:
            data_dir.read_meta()
        except StorageError as err:
            self._damage(path, str(err))
        else:
            if data_dir.meta_fault:
                self._damage(path, f"{data_dir.meta_fault}: `kafka-shim storage mend` writes a new one")
        folders = []
        for entry in sorted(os.scandir(data_dir.path), key=lambda one: one.name):
            if not entry.is_dir():
                continue
            if names.is_foreign(entry.name):
                self._damage(entry.path, "is no folder of a partition: no broker starts here, move it away")
            elif names.partition_of(entry.name) is not None:
                folders.append(entry.name)
        return folders

    def partition(self, path: str) -> tuple[int, int]:
        """Returns (first offset, next offset) of what can be read."""
        try:
            found = sorted(os.listdir(path))
        except OSError as err:
            self._damage(path, f"cannot be read: {err.strerror}")
            return 0, 0
        logs = [name for name in found if name.endswith(names.LOG)]
        first = next_offset = names.offset_of(logs[0]) if logs else 0
        for number, name in enumerate(logs):
            base_offset = names.offset_of(name)
            if base_offset < next_offset:
                self._damage(f"{path}/{name}", f"begins below offset {next_offset}, where the segment before ends")
            next_offset = max(next_offset, self._segment(f"{path}/{name}", base_offset, number == len(logs) - 1))
        for name in found:
            if name.endswith(names.SNAPSHOT):
                self._snapshot(f"{path}/{name}")
            elif name.endswith(names.METADATA_SNAPSHOT):
                self._walk(f"{path}/{name}", 0)
        self._epochs(f"{path}/{names.LEADER_EPOCHS}", next_offset)
        return first, next_offset

    def _segment(self, path: str, base_offset: int, is_last: bool) -> int:
        """Returns the offset after the last good batch."""
        self._report.segments += 1
        walk, size_bytes = self._walk(path, base_offset, ends_torn=is_last and not self._report.was_clean)
        if walk is None:
            return base_offset
        if walk.position == size_bytes:
            self._indexes(path.removesuffix(names.LOG), base_offset, walk.next_offset)
        return walk.next_offset

    def _walk(self, path: str, base_offset: int, *, ends_torn: bool = False) -> tuple[Walk | None, int]:
        """Reads the batches of a file. `ends_torn`: a crash may have left half a batch at its end."""
        try:
            with open(path, "rb") as file:
                size_bytes = os.fstat(file.fileno()).st_size
                walk = Walk(file.fileno(), 0, size_bytes, True, base_offset)
                position = 0
                first = True
                for batch in walk:
                    if first and batch.base_offset < base_offset:
                        self._damage(path, f"begins with offset {batch.base_offset}, below its name's")
                    first = False
                    self._report.batches += 1
                    self._report.read_bytes += batch.size_bytes
                    if walk.position - position > 1 << 20:
                        self._progress(walk.position - position)
                        position = walk.position
                self._progress(size_bytes - position)
        except OSError as err:
            self._damage(path, f"cannot be read: {err.strerror}")
            return None, 0
        if walk.position < size_bytes:
            self._ends_early(path, walk, size_bytes, ends_torn)
        return walk, size_bytes

    def _ends_early(self, path: str, walk: Walk, size_bytes: int, ends_torn: bool) -> None:
        """The file has more than the batches that could be read."""
        left = size_bytes - walk.position
        text = f"{left} bytes from position {walk.position}, offset {walk.next_offset} on are no batches"
        text += f": {Verdict(walk.verdict).name}"
        if not ends_torn:
            self._damage(path, text)
        elif _has_batch_after(path, walk, size_bytes):
            self._damage(path, f"{text}; the next start cuts them off, with the whole batches that follow")
        else:
            self._repaired(path, f"{text}; they are cut off")

    def _indexes(self, stem: str, base_offset: int, next_offset: int) -> None:
        """The indexes of a segment whose batches are whole."""
        for suffix in (names.INDEX, names.TIME_INDEX):
            if not os.path.exists(stem + suffix):
                continue
            dump = Dump(Options(verify_only=True, spares_emptied=True))
            try:
                for _ in dump.lines(stem + suffix):
                    pass
            except (OSError, ValueError, IndexError) as err:
                dump.complaints.append(str(err))
            if dump.complaints:
                detail = dump.complaints[1] if len(dump.complaints) > 1 else dump.complaints[0]
                text = f"contradicts the log: {detail.strip()}"
                self._damage(stem + suffix, f"{text}: remove the file, the next start writes a new one")
        try:
            entries = list(TxnIndex(stem + names.TXN_INDEX).entries())
        except OSError as err:
            self._damage(stem + names.TXN_INDEX, f"cannot be read: {err.strerror}")
            return
        for _, first, last, _ in entries:
            if not base_offset <= last < next_offset or first > last:
                self._damage(stem + names.TXN_INDEX, f"has an aborted transaction from {first} to {last}")

    def _snapshot(self, path: str) -> None:
        try:
            producer_snapshot.read(path)
        except producer_snapshot.SnapshotError as err:
            self._repaired(path, f"{err}: it is left aside, and producers are read from the log")
        except OSError as err:
            self._damage(path, f"cannot be read: {err.strerror}")

    def _epochs(self, path: str, next_offset: int) -> None:
        try:
            rows = [(int(epoch), int(offset)) for epoch, offset in checkpoint.read_lines(path, 2)]
        except (CheckpointError, ValueError) as err:
            self._damage(path, str(err))
            return
        except OSError as err:
            self._damage(path, f"cannot be read: {err.strerror}")
            return
        for before, row in pairwise(rows):
            if row[0] <= before[0] or row[1] < before[1]:
                self._damage(path, f"epoch {row[0]} at offset {row[1]} follows epoch {before[0]} at {before[1]}")
        if rows and rows[-1][1] > next_offset:
            said = self._damage if self._report.was_clean else self._repaired
            said(path, f"epoch {rows[-1][0]} begins at offset {rows[-1][1]}, above the end of the log, {next_offset}")

    def metadata(self, path: str, ends: dict[tuple[str, int], tuple[int, int]]) -> None:
        """A log of metadata that begins nowhere knows no topic; one behind a snapshot begins at its offset."""
        if METADATA in ends and ends[METADATA][1] == 0 and len(ends) > 1:
            aside = counted(len(ends) - 1, "partition")
            self._damage(path, f"no metadata is left: the next start would set {aside} aside")

    def offsets(self, path: str, ends: dict[tuple[str, int], tuple[int, int]]) -> None:
        """A checkpoint of offsets of all partitions."""
        try:
            found = checkpoint.read_offsets(path)
        except CheckpointError as err:
            self._repaired(path, f"{err}: it is left aside")
            return
        except OSError as err:
            self._damage(path, f"cannot be read: {err.strerror}")
            return
        for partition, offset in sorted(found.items()):
            if partition in ends and partition[0] != CLUSTER_METADATA_TOPIC and offset > ends[partition][1]:
                name = f"{partition[0]}-{partition[1]}"
                text = f"says offset {offset} of {name}, whose log ends at {ends[partition][1]}"
                (self._damage if self._report.was_clean else self._repaired)(path, text)

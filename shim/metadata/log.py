"""The metadata log: batches of metadata records in `__cluster_metadata-0`, and the snapshots in its directory.

Source: KafkaMetadataLog, KafkaRaftClient (LeaderState) and MetadataRecordSerde of Kafka 4.3.1.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import islice

from kafka_shim.cext.batch import BatchError, scan, scan_all
from kafka_shim.cext.records import build, iterate
from kafka_shim.metadata.quorum_state import QuorumState, read, write
from kafka_shim.metadata.replay_topics import ReplayError, check_whole
from kafka_shim.protocol.record_frames import (
    ControlType,
    decode_control,
    decode_metadata,
    encode_control,
    encode_metadata,
)
from kafka_shim.protocol.records.leader_change_message import LeaderChangeMessage, Voter
from kafka_shim.storage.checkpoint import replace_file
from kafka_shim.storage.names import LOG, METADATA_SNAPSHOT, offset_of
from kafka_shim.storage.regular_files import read_file
from kafka_shim.storage.results import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path
    from typing import Any

    from kafka_shim.metadata.image import Image
    from kafka_shim.metadata.replay import Replayer
    from kafka_shim.protocol.records.voters_record import Voter as QuorumVoter
    from kafka_shim.protocol.records.voters_record import VotersRecord
    from kafka_shim.storage.log import PartitionLog

# The batch size in a snapshot. Kafka reads whole batches of at most 8 MiB.
RECORDS_IN_BATCH = 1000
# What records raise whose bytes or values are damaged, or of a later version.
UNREADABLE = (BatchError, ValueError, LookupError, TypeError)


class MetadataLogError(StorageError):
    """The metadata log or a snapshot cannot be loaded. The message names the directory and the reason."""


class MetadataLog:
    """Appends to and reads the single partition of `__cluster_metadata`. Owned by `MetadataStore`."""

    __slots__ = (
        "_flushing",
        "_log",
        "_node_id",
        "_unflushed",
        "_voters",
        "_voters_are_logged",
        "bytes_after_snapshot",
        "epoch",
        "kraft_version",
    )

    def __init__(self, log: PartitionLog, node_id: int) -> None:
        self._log = log
        self._node_id = node_id
        self._flushing: Future[None] | None = None
        self._unflushed = False
        self.epoch = 0
        self.kraft_version = 0
        # The VotersRecord of a dynamic quorum (kraft.version 1).
        self._voters: VotersRecord | None = None
        # False: only the snapshot at offset 0 has them, which the storage tool wrote.
        self._voters_are_logged = True
        # Bytes appended to this log since the newest snapshot.
        self.bytes_after_snapshot = 0

    @property
    def directory(self) -> Path:
        return self._log.path

    @property
    def partition_log(self) -> PartitionLog:
        """The log itself. Only to be read."""
        return self._log

    def newest_snapshot(self) -> tuple[int, int] | None:
        """Return (end offset, epoch) of the newest snapshot, or None. That at offset 0 does not count: the log has all
        that is in it."""
        end_offset, epoch, _ = max(snapshots(self.directory), default=(0, 0, None))
        return (end_offset, epoch) if end_offset else None

    def snapshot_path(self, end_offset: int, epoch: int) -> Path:
        """Return where the file of this snapshot is, if there is one."""
        return self.directory / f"{end_offset:020d}-{epoch:010d}{METADATA_SNAPSHOT}"

    @property
    def next_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def voters(self) -> list[tuple[int, bytes]]:
        """(node id, directory id) of each voter of a dynamic quorum (kraft.version 1)."""
        return [] if self._voters is None else [(one.voter_id, one.voter_directory_id) for one in self._voters.voters]

    # --- start

    def replay(self, replayer: Replayer) -> None:
        """Apply the newest snapshot and the log after it. Raises MetadataLogError."""
        try:
            self._replay(replayer)
        except UNREADABLE as err:
            offset = _offset_of(err, replayer.image)
            raise MetadataLogError(_unreadable(self._file_of(offset), offset, err)) from err

    def _file_of(self, offset: int) -> Path:
        """Return the segment with this offset, for a message."""
        names = sorted(path for path in self.directory.iterdir() if path.name.endswith(LOG))
        return next((path for path in reversed(names) if offset_of(path.name) <= offset), self.directory)

    def _replay(self, replayer: Replayer) -> None:
        start = self._replay_snapshot(replayer)
        if self._log.log_start_offset > start:
            raise MetadataLogError(
                f"{self.directory}: the log starts at offset {self._log.log_start_offset} and no snapshot reaches it"
            )
        if start > self._log.log_end_offset:
            raise MetadataLogError(
                f"{self.directory}: a snapshot ends at offset {start}, the log at {self._log.log_end_offset}"
            )
        for buffer, batch in self._log.batches(start or None):
            self._replay_batch(replayer, buffer, 0, batch, start)
            self.bytes_after_snapshot += batch.size_bytes
        check_whole(replayer.image)

    def _replay_batch(self, replayer: Replayer, buffer: Any, position: int, batch: Any, start: int = 0) -> None:
        self.epoch = max(self.epoch, batch.leader_epoch)
        image = replayer.image
        for record in iterate(buffer, position, position + batch.size_bytes):
            if record.offset < start:
                continue
            if batch.is_control:
                self._apply_control(record)
            else:
                replayer.apply(decode_metadata(record.value or b"")[0])
            image.last_offset = record.offset
        image.last_epoch = batch.leader_epoch
        image.last_timestamp_ms = batch.max_timestamp

    def _apply_control(self, record: Any) -> None:
        kind, message = decode_control(record.key, record.value)
        if kind == ControlType.KRAFT_VERSION:
            self.kraft_version = message.kraft_version  # type: ignore[union-attr]
        elif kind == ControlType.KRAFT_VOTERS:
            self._voters = message  # type: ignore[assignment]
            self._voters_are_logged = True

    def _replay_snapshot(self, replayer: Replayer) -> int:
        """Apply the newest snapshot. Returns the offset after it, or 0 if there is no snapshot."""
        found = max(snapshots(self.directory), default=None)
        if found is None:
            return 0
        end_offset, epoch, path = found
        content = read_file(os.fspath(path))
        try:
            for batch in scan_all(content):
                self._replay_batch(replayer, content, batch.position, batch)
            check_whole(replayer.image)
        except UNREADABLE as err:
            raise MetadataLogError(_unreadable(path, _offset_of(err, replayer.image), err)) from err
        self._voters_are_logged = end_offset > 0
        image = replayer.image
        image.last_offset = end_offset - 1
        image.last_epoch = epoch
        self.epoch = max(self.epoch, epoch)
        return end_offset

    def begin_epoch(self, now_ms: int) -> None:
        """Become leader in a new epoch: write the epoch to `quorum-state`, then append a LeaderChangeMessage, and the
        voters of a dynamic quorum if the log does not have them yet."""
        state = read(self.directory)
        if state is None:
            state = QuorumState(min(self.kraft_version, 1), self._node_id, 0, [self._node_id])
        state.version = max(state.version, min(self.kraft_version, 1))
        state.leader_epoch = self.epoch = max(state.leader_epoch, self.epoch) + 1
        state.leader_id = self._node_id
        state.voters = state.voters or [self._node_id]
        write(self.directory, state)
        self._log.leader_epoch = self.epoch
        # Version 0, without directory ids, as Kafka writes and reads it even in a dynamic quorum.
        seats = [Voter(voter_id=voter) for voter in [one for one, _ in self.voters] or state.voters]
        message = LeaderChangeMessage(
            leader_id=self._node_id,
            voters=seats,
            granting_voters=[seat for seat in seats if seat.voter_id == self._node_id],
        )
        rows = [(*encode_control(ControlType.LEADER_CHANGE, message), now_ms, ())]
        if self._voters is not None and not self._voters_are_logged:
            rows += _quorum_rows(self.kraft_version, self._voters, now_ms)
            self._voters_are_logged = True
        self._append(build(rows, leader_epoch=self.epoch, control=True), now_ms)

    # --- commit

    def append(self, values: Sequence[bytes], now_ms: int) -> int:
        """Append encoded records as one batch, all or none. Returns the offset of the first record."""
        return self.append_batch(self.batch_of([(None, value, now_ms, ()) for value in values]), now_ms)

    def batch_of(self, rows: Sequence[tuple[None, bytes, int, tuple[()]]]) -> bytearray:
        """Return the batch of encoded records, (None, value, timestamp, no headers) each, in this epoch."""
        return build(rows, leader_epoch=self.epoch)

    def append_batch(self, batch: bytearray, now_ms: int) -> int:
        """As `append`, of a batch that is built."""
        return self._append(batch, now_ms)

    def upgrade_kraft_version(self, voter: QuorumVoter, now_ms: int) -> int:
        """Append the control records that make the quorum a dynamic one with this voter (KIP-853). Returns the offset
        of the first."""
        from kafka_shim.protocol.records.voters_record import VotersRecord

        voters = VotersRecord(voters=[voter])
        rows = _quorum_rows(1, voters, now_ms)
        first = self._append(build(rows, leader_epoch=self.epoch, control=True), now_ms)
        self.kraft_version, self._voters = 1, voters
        return first

    def update_voter(self, voter: QuorumVoter, now_ms: int) -> None:
        """Append the voters of a dynamic quorum if this one has other endpoints now, as Kafka's leader does when its
        epoch begins (LeaderState.appendStartOfEpochControlRecords). Another voter, or directory, is never added."""
        from kafka_shim.protocol.records.voters_record import VotersRecord

        def facts(one: QuorumVoter) -> object:
            versions = one.kraft_version_feature
            endpoints = sorted((each.name, each.host, each.port) for each in one.endpoints)
            return endpoints, versions.min_supported_version, versions.max_supported_version

        known = () if self._voters is None else self._voters.voters
        who = (voter.voter_id, voter.voter_directory_id)
        is_own = [(one.voter_id, one.voter_directory_id) == who for one in known]
        if not any(own and facts(one) != facts(voter) for own, one in zip(is_own, known, strict=True)):
            return
        voters = VotersRecord(voters=[voter if own else one for own, one in zip(is_own, known, strict=True)])
        rows = [(*encode_control(ControlType.KRAFT_VOTERS, voters), now_ms, ())]
        self._append(build(rows, leader_epoch=self.epoch, control=True), now_ms)
        self._voters = voters

    def _append(self, batch: bytearray, now_ms: int) -> int:
        self._unflushed, size_bytes = True, len(batch)
        base_offset = self._log.append_batch(batch, now_ms=now_ms, is_limited=False).base_offset
        self.bytes_after_snapshot += size_bytes  # nothing is called here: memory may end in a call
        return base_offset

    def flushing(self) -> Future[None] | None:
        """Request an fsync of everything appended so far. Returns its future, which completes in the flusher thread, or
        None if everything is already on the disk. After a failed fsync a new one is requested once the log is online
        again."""
        if self._flushing is not None and self._flushing.done():
            if self._flushing.exception() is None:
                self._flushing = None
            else:
                # Nobody reads this log, so nothing else would take it offline before the next commit.
                self._log.check_sync()
                self._unflushed = self._unflushed or not self._log.is_offline
        if self._unflushed:
            self._flushing = self._log.request_flush()
            self._unflushed = False
        return self._flushing

    def flush(self) -> None:
        """fsync and block until it is done. Used at the end of a start and at a clean stop."""
        self._log.flush()
        self._unflushed = False
        self._flushing = None

    # --- snapshots

    def begin_snapshot(self, now_ms: int, last_contained_ms: int) -> Callable[[Iterable[tuple[Any, int]]], bytes]:
        """Begin a snapshot at the end of the log. Returns a function that makes its bytes of (record, version) pairs,
        in any thread."""
        controls: list[tuple[bytes, bytes]] = []
        if self.kraft_version > 0:
            from kafka_shim.protocol.records.kraft_version_record import KRaftVersionRecord

            version = KRaftVersionRecord(kraft_version=self.kraft_version)
            controls.append(encode_control(ControlType.KRAFT_VERSION, version))
            if self._voters is not None:
                controls.append(encode_control(ControlType.KRAFT_VOTERS, self._voters))
        return partial(
            snapshot_bytes, now_ms=now_ms, last_contained_ms=last_contained_ms, epoch=self.epoch, controls=controls
        )

    def write_snapshot(self, end_offset: int, epoch: int, content: bytes) -> None:
        """Write and fsync a snapshot file atomically. May be called from any thread. Raises OSError."""
        replace_file(os.fspath(self.snapshot_path(end_offset, epoch)), content, sync=True)

    def prune(self, retention_bytes: int, retention_ms: int, now_ms: int) -> None:
        """Delete old snapshots and the segments that a newer snapshot covers, oldest first. Continues while log and
        snapshots together exceed `retention_bytes` or the oldest snapshot is older than `retention_ms` (-1: no limit).
        The newest snapshot always stays. Raises OSError."""
        found = sorted(snapshots(self.directory))
        sizes = [path.stat().st_size for _, _, path in found]
        for (_, _, path), size_bytes, newer in zip(found, sizes[:], found[1:], strict=False):
            over_bytes = 0 <= retention_bytes < self._log.size_bytes + sum(sizes)
            if not over_bytes and not 0 <= retention_ms < now_ms - _snapshot_timestamp_ms(path):
                return
            # Delete the segments before the snapshot, so that after a crash in between the log does not start below its
            # oldest snapshot.
            self._log.release_before(newer[0], now_ms)
            path.unlink()
            sizes.remove(size_bytes)


def _offset_of(error: Exception, image: Image) -> int:
    """Return the offset of the record that stopped a replay."""
    if isinstance(error, ReplayError) and error.offset >= 0:
        return error.offset
    return image.last_offset + 1


def _unreadable(path: Path, offset: int, error: Exception) -> str:
    where = path if isinstance(error, BatchError) else f"{path}: the record at offset {offset}"
    return (
        f"{where} cannot be read by this version of kafka-shim, or is damaged: take the file from a backup "
        f"({error or type(error).__name__})"
    )


def _quorum_rows(kraft_version: int, voters: VotersRecord, now_ms: int) -> list[tuple[bytes, bytes, int, tuple[()]]]:
    """Return the control records of a dynamic quorum, for `build`."""
    from kafka_shim.protocol.records.kraft_version_record import KRaftVersionRecord

    version = KRaftVersionRecord(kraft_version=kraft_version)
    return [
        (*encode_control(ControlType.KRAFT_VERSION, version), now_ms, ()),
        (*encode_control(ControlType.KRAFT_VOTERS, voters), now_ms, ()),
    ]


def _snapshot_timestamp_ms(path: Path) -> int:
    """Return the append time of the last record that a snapshot covers, from its header, or 0 if there is no header."""
    content = read_file(os.fspath(path))
    batch = scan(content)
    for record in iterate(content, 0, batch.size_bytes):
        kind, header = decode_control(record.key or b"", record.value or b"")
        if kind == ControlType.SNAPSHOT_HEADER:
            return int(header.last_contained_log_timestamp)  # type: ignore[union-attr]
    return 0


def snapshots(directory: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield (end offset, epoch, path) of each complete snapshot, such as
    `00000000000000000100-0000000003.checkpoint`."""
    for name in os.listdir(directory):  # noqa: PTH208  (names are enough)
        stem, dot, suffix = name.partition(".")
        offset, dash, epoch = stem.partition("-")
        if dash and dot + suffix == METADATA_SNAPSHOT and len(offset) == 20 and len(epoch) == 10:
            yield int(offset), int(epoch), directory / name


def read_records(content: bytes) -> Iterable[Any]:
    """Yield the record messages of a snapshot file such as `bootstrap.checkpoint`, without the control records."""
    for batch in scan_all(content):
        if not batch.is_control:
            for record in iterate(content, batch.position, batch.position + batch.size_bytes):
                yield decode_metadata(record.value or b"")[0]


def snapshot_bytes(
    records: Iterable[tuple[Any, int]],
    now_ms: int,
    last_contained_ms: int = 0,
    *,
    epoch: int = 0,
    controls: Sequence[tuple[bytes, bytes]] = (),
) -> bytes:
    """Return the bytes of a snapshot file: header and other control records, the (record, version) pairs, footer
    (Kafka: RecordsSnapshotWriter)."""
    from kafka_shim.protocol.records.snapshot_footer_record import SnapshotFooterRecord
    from kafka_shim.protocol.records.snapshot_header_record import SnapshotHeaderRecord

    header = encode_control(
        ControlType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_ms)
    )
    footer = encode_control(ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord())
    head = [(*pair, now_ms, ()) for pair in (header, *controls)]
    parts = [build(head, leader_epoch=epoch, control=True)]
    offset = len(head)
    rest = iter(records)
    while some := list(islice(rest, RECORDS_IN_BATCH)):
        rows = [(None, encode_metadata(record, version), now_ms, ()) for record, version in some]
        parts.append(build(rows, base_offset=offset, leader_epoch=epoch))
        offset += len(rows)
    parts.append(build([(*footer, now_ms, ())], base_offset=offset, leader_epoch=epoch, control=True))
    return b"".join(parts)

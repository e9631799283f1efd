"""The contents of log files as text, in the lines of Kafka's DumpLogSegments."""

from __future__ import annotations

import os

from kafka_shim.cext.batch import HEADER_SIZE, BatchError, scan
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.records import iterate
from kafka_shim.cext.segment import Walk, find_batch, read
from kafka_shim.storage import dump_records, names, producer_snapshot
from kafka_shim.storage.index import OffsetIndex, TimeIndex
from kafka_shim.storage.txn_index import VERSION as TXN_VERSION
from kafka_shim.storage.txn_index import TxnIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.cext.batch import Batch
    from kafka_shim.cext.records import Record
    from kafka_shim.storage.dump_records import Texts

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
BOOTSTRAP = "bootstrap.checkpoint"
CRC_FROM = 21
MAX_INT32 = 0x7FFFFFFF


class Options:
    """What to show. `parser` turns a record into texts; `deep` shows the records, `contents` their keys and values.
    `spares_emptied`: no complaint that an index has the time of a batch that compaction emptied. Kafka's tool looks for
    that time among its records, but its broker takes it from the header too."""

    __slots__ = (
        "contents",
        "deep",
        "max_bytes",
        "parser",
        "sanity_only",
        "skip_metadata",
        "spares_emptied",
        "verify_only",
    )

    def __init__(
        self,
        *,
        deep: bool = False,
        contents: bool = False,
        parser: Callable[[Record], Texts] = dump_records.plain,
        skip_metadata: bool = False,
        verify_only: bool = False,
        sanity_only: bool = False,
        spares_emptied: bool = False,
        max_bytes: int = MAX_INT32,
    ) -> None:
        self.deep = deep or contents
        self.contents = contents
        self.parser = parser
        self.skip_metadata = skip_metadata
        self.verify_only = verify_only
        self.sanity_only = sanity_only
        self.spares_emptied = spares_emptied
        self.max_bytes = max_bytes


class Dump:
    """One run over several files. What is wrong with them gathers in `complaints`, for stderr at the end."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.complaints: list[str] = []

    def lines(self, path: str) -> Iterator[str]:
        """Everything about one file. Raises OSError, ValueError (a file that is not what its name says)."""
        yield f"Dumping {path}"
        name = os.path.basename(path)
        suffix = os.path.splitext(name)[1]
        if suffix in (names.LOG, names.METADATA_SNAPSHOT):
            yield from self._log(path, name)
        elif suffix == names.INDEX:
            yield from self._offset_index(path)
        elif suffix == names.TIME_INDEX:
            yield from self._time_index(path)
        elif suffix == names.TXN_INDEX:
            for producer_id, first, last, stable in TxnIndex(path).entries():
                yield (
                    f"version: {TXN_VERSION} producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
                    f"lastStableOffset: {stable}"
                )
        elif suffix == names.SNAPSHOT:
            yield from self._snapshot(path)
        else:
            self.complaints.append(f"Ignoring unknown file {path}")

    # --- .log and .checkpoint

    def _log(self, path: str, name: str) -> Iterator[str]:
        if name == BOOTSTRAP:
            yield "KRaft bootstrap snapshot"
        elif name.endswith(names.METADATA_SNAPSHOT):
            offset, _, epoch = name.removesuffix(names.METADATA_SNAPSHOT).partition("-")
            yield f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"
        else:
            yield f"Log starting offset: {_base_offset(path)}"
        with open(path, "rb") as file:
            fd = file.fileno()
            size_bytes = os.fstat(fd).st_size
            walk = Walk(fd, 0, min(size_bytes, self.options.max_bytes), False, 0)
            gaps: list[str] = []
            broken: list[str] = []
            last_offset = -1
            for batch in walk:
                content = read(fd, batch.position, batch.size_bytes)
                yield batch_line(batch, content)
                if not self.options.deep:
                    continue
                try:
                    for record in iterate(content):
                        if record.offset != last_offset + 1:
                            gaps.append(f"  {last_offset} is followed by {record.offset}")
                        last_offset = record.offset
                        yield self._record_line(batch, record)
                except BatchError as err:
                    broken.append(f"  {BatchError(err.verdict, batch.position, err.record_index)}")
                    last_offset = batch.last_offset
            if broken:
                self.complaints += [f"Batches that cannot be read in {os.path.abspath(path)}", *broken]
            if gaps:
                self.complaints += [f"Non-consecutive offsets in {os.path.abspath(path)}", *gaps]
            if walk.position < size_bytes and self.options.max_bytes == MAX_INT32:
                yield f"Found {size_bytes - walk.position} invalid bytes at the end of {name}"

    def _record_line(self, batch: Batch, record: Record) -> str:
        parts = []
        if not self.options.skip_metadata:
            parts.append(_record_facts(batch, record))
        if self.options.contents and not batch.is_control:
            prefix = "| " if self.options.skip_metadata else " "
            for label, text in zip(("key", "payload"), self.options.parser(record), strict=True):
                if text is not None:
                    parts.append(f"{prefix}{label}: {text}")
                    prefix = " "
        return "".join(parts)

    # --- indexes

    def _offset_index(self, path: str) -> Iterator[str]:
        index = OffsetIndex(path)
        usable = index.load()
        if not index.count:
            yield f"{path} is empty."
            return
        if self.options.sanity_only:
            yield _sanity(path, usable)
            return
        base_offset = _base_offset(path)
        wrong = []
        with open(path.removesuffix(names.INDEX) + names.LOG, "rb") as log:
            for number in range(index.count):
                relative, position = index.at(number)
                last_offset = _last_offset_at(log.fileno(), position)
                if last_offset != base_offset + relative:
                    wrong.append(f"  Index offset: {base_offset + relative}, log offset: {last_offset}")
                if not self.options.verify_only:
                    yield f"offset: {base_offset + relative} position: {position}"
        if wrong:
            self.complaints += [f"Mismatches in :{os.path.abspath(path)}", *reversed(wrong)]

    def _time_index(self, path: str) -> Iterator[str]:
        stem = path.removesuffix(names.TIME_INDEX)
        times, index = TimeIndex(path), OffsetIndex(stem + names.INDEX)
        usable = times.load()
        index.load()
        if self.options.sanity_only:
            yield _sanity(path, usable)
            return
        base_offset = _base_offset(path)
        before = -1
        complaints: dict[str, list[str]] = {}
        with open(stem + names.LOG, "rb") as log:
            fd = log.fileno()
            for number in range(times.count):
                timestamp, relative = times.at(number)
                offset = base_offset + relative
                found = find_batch(fd, index.lookup(relative)[1], os.fstat(fd).st_size, offset)
                if found is None or found[3] != offset:
                    complaints.setdefault("The following indexed offsets are not found in :", []).append(
                        f"Indexed offset: {offset}, found log offset: {-1 if found is None else found[3]}"
                    )
                else:
                    stored = read(fd, found[0], found[1])
                    of_empty = scan(stored, check_crc=False).max_timestamp if self.options.spares_emptied else -1
                    largest = max((record.timestamp for record in iterate(stored)), default=of_empty)
                    if largest != timestamp:
                        complaints.setdefault("Found timestamp mismatch in :", []).append(
                            f"  Index timestamp: {timestamp}, log timestamp: {largest}"
                        )
                    if before >= timestamp:
                        complaints.setdefault("Found out of order timestamp in :", []).append(
                            f"  Index timestamp: {timestamp}, Previously indexed timestamp: {before}"
                        )
                if not self.options.verify_only:
                    yield f"timestamp: {timestamp} offset: {offset}"
                before = timestamp
        for title, details in complaints.items():
            self.complaints += [title + os.path.abspath(path), *details]

    # --- .snapshot

    def _snapshot(self, path: str) -> Iterator[str]:
        try:
            entries = producer_snapshot.read(path)
        except producer_snapshot.SnapshotError as err:
            self.complaints.append(f"Snapshot {path} is corrupt: {err}")
            return
        for entry in entries:
            line = (
                f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} coordinatorEpoch: "
                f"{entry.coordinator_epoch} currentTxnFirstOffset: {_optional(entry.txn_first_offset)} lastTimestamp: "
                f"{entry.last_timestamp_ms}"
            )
            if entry.batches:
                first_sequence, last_sequence, first_offset, last_offset, timestamp_ms = entry.batches[-1]
                line += (
                    f" firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset} "
                    f"offsetDelta: {last_offset - first_offset} timestamp: {timestamp_ms}"
                )
            yield line


def batch_line(batch: Batch, content: bytes) -> str:
    """Returns the line of a batch, in the words of Kafka's DumpLogSegments."""
    horizon = batch.base_timestamp if batch.has_delete_horizon else -1
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.leader_epoch} "
        f"isTransactional: {_boolean(batch.is_transactional)} isControl: {_boolean(batch.is_control)} "
        f"deleteHorizonMs: {_optional(horizon)} position: {batch.position} {_time_type(batch)}: {batch.max_timestamp} "
        f"size: {batch.size_bytes} magic: {batch.magic} compresscodec: {CODEC_NAMES[batch.compression]} "
        f"crc: {batch.crc} isvalid: {_boolean(crc32c(memoryview(content)[CRC_FROM:]) == batch.crc)}"
    )


def _record_facts(batch: Batch, record: Record) -> str:
    sequence = -1
    if batch.base_sequence >= 0:
        sequence = (batch.base_sequence + record.offset - batch.base_offset) & MAX_INT32
    keys = ",".join(key for key, _ in record.headers)
    line = (
        f"| offset: {record.offset} {_time_type(batch)}: {record.timestamp} keySize: {_size(record.key)} "
        f"valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{keys}]"
    )
    return line + dump_records.control(record) if batch.is_control else line


def _sanity(path: str, usable: bool) -> str:
    if not usable:
        raise ValueError(f"{path} ends within an entry")
    return f"{path} passed sanity check."


def _last_offset_at(fd: int, position: int) -> int:
    try:
        header = read(fd, position, HEADER_SIZE)
        found = find_batch(fd, position, os.fstat(fd).st_size, int.from_bytes(header[:8], "big"))
    except OSError:
        return -1
    return -1 if found is None else found[3]


def _base_offset(path: str) -> int:
    offset = names.offset_of(os.path.basename(path))
    if offset < 0:
        raise ValueError(f"{path}: the name does not begin with an offset")
    return offset


def _time_type(batch: Batch) -> str:
    return "LogAppendTime" if batch.is_log_append_time else "CreateTime"


def _optional(value: int) -> str:
    return "OptionalLong.empty" if value < 0 else f"OptionalLong[{value}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)

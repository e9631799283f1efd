"""Logs in a temporary directory under a virtual clock, and batches to append."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.records import build, iterate, parse_marker
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import Faults
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.appends import append_as_client, start_verification

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.tests.storage.two_dirs import TwoDirs

TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000
PRODUCE = 12


class Disk:
    """One data directory through several lives. `open` starts a life, `crash` ends it without a trace in memory."""

    def __init__(self, path: Path, topic: dict[str, str], broker: dict[str, Any]) -> None:
        self.path = path
        self.clock = VirtualClock(NOW_MS)
        self.faults = Faults()
        self.topic = topic
        self.broker = broker
        self.logs: Logs | None = None

    def open(self, topic: dict[str, str] | None = None) -> PartitionLog:
        """Start, and answer the log of t-0, made at the first time."""
        if topic is not None:
            self.topic = topic
        config = BrokerConfig(**{"log_dirs": (str(self.path),), **self.broker})
        topic_config = TopicConfig(config, self.topic)
        self.logs = Logs(config, self.clock, self.faults)
        self.logs.open_dirs()
        self.logs.start(lambda name, partition: (TOPIC_ID, topic_config, 0))
        return self.logs.create("t", TOPIC_ID, 0, topic_config)

    def checkpoint(self) -> None:
        """What the broker does once a minute."""
        assert self.logs is not None
        self.logs.checkpoints.write_aside()
        self.logs.services.flusher.stop()

    def stop(self) -> None:
        if self.logs is not None:
            self.logs.stop()
            self.logs = None

    def crash(self) -> None:
        """What SIGKILL leaves: the files as they are; descriptors and locks go."""
        assert self.logs is not None
        self.logs.services.removals.cancel_all()
        self.logs.services.flusher.stop()
        for log in self.logs.partitions.loaded.values():
            for segment in log.segments:
                segment.abandon()
        for data_dir in self.logs.dirs:
            data_dir.unlock()
        self.logs = None

    @property
    def partition(self) -> Path:
        return self.path / "t-0"

    def files(self) -> list[str]:
        return sorted(entry.name for entry in self.partition.iterdir())


def note_syncs(disk: Disk) -> list[str]:
    """The paths of the files that are fsynced from now on, as they come."""
    synced: list[str] = []
    disk.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
    return synced


@contextmanager
def failing_loads(clock: VirtualClock) -> Iterator[list[int]]:
    """Partitions cannot be read. Gives the times in ms at which it was tried."""
    tried_ms: list[int] = []

    def fail(*_: object) -> None:
        tried_ms.append(clock.monotonic_ms())
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka_shim.storage.recovery.load", fail)
        yield tried_ms


def make_logs(*paths: Path, node_id: int = 1) -> tuple[Logs, TopicConfig]:
    """The partitions in these directories, before `start`, and the configuration of their topics."""
    config = BrokerConfig(log_dirs=tuple(map(str, paths)), node_id=node_id)
    return Logs(config, VirtualClock(NOW_MS), Faults()), TopicConfig(config)


def start(logs: Logs, config: TopicConfig, cluster_id: str | None = None) -> str:
    """Start with metadata that knows every partition, and return the cluster id."""
    cluster = logs.open_dirs(cluster_id)
    logs.start(lambda topic, partition: (TOPIC_ID, config, 0))
    return cluster


def stored_logs(disk: Disk) -> tuple[Logs, TopicConfig]:
    """A second life over three records of t-0, which nobody has used yet."""
    put(disk.open(), b"a", b"b", b"c")
    disk.stop()
    logs, config = make_logs(disk.path)
    start(logs, config)
    return logs, config


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[Callable[..., Disk]]:
    disks: list[Disk] = []

    def make(topic: dict[str, str] | None = None, **broker: Any) -> Disk:
        disk = Disk(tmp_path / f"data{len(disks)}", topic or {}, broker)
        disks.append(disk)
        return disk

    yield make
    for disk in disks:
        disk.stop()


@pytest.fixture
def log(make_disk: Callable[..., Disk]) -> PartitionLog:
    return make_disk().open()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TwoDirs]:
    from kafka_shim.tests.storage.two_dirs import TwoDirs  # which needs this module

    found = TwoDirs(tmp_path / "data")
    yield found
    found.stop()


def batch(
    *values: bytes,
    key: bytes | None = None,
    timestamp: int = NOW_MS,
    pid: int = -1,
    epoch: int = -1,
    seq: int = -1,
    txn: bool = False,
    codec: int = 0,
) -> bytearray:
    """A producer's batch of these values."""
    return build(
        [(key, value, timestamp, ()) for value in values or (b"v",)],
        codec=codec,
        producer_id=pid,
        producer_epoch=0 if pid >= 0 and epoch < 0 else epoch,
        base_sequence=seq,
        transactional=txn,
    )


def put(log: PartitionLog, *values: bytes, now_ms: int = NOW_MS, version: int = PRODUCE, **fields: Any) -> Any:
    """Append a batch of these values as a client; a transactional one is verified as its Produce handler would."""
    data = batch(*values, **fields)
    guard = None
    if fields.get("txn"):
        guard = start_verification(log, fields["pid"], fields["seq"], max(fields.get("epoch", 0), 0), version >= 12)
    return append_as_client(log, data, now_ms=now_ms, version=version, verification=guard)


def end(
    log: PartitionLog,
    pid: int,
    epoch: int,
    *,
    commit: bool,
    version: int = 1,
    coordinator: int = 0,
    now_ms: int = NOW_MS,
) -> int:
    """A marker."""
    return log.append_marker(pid, epoch, coordinator, commit, version, now_ms).base_offset


def records(log: PartitionLog, offset: int | None = None, *, isolation: int = 0) -> list[tuple[int, bytes | None]]:
    """(offset, value) of all records that a consumer sees from `offset` on, control records left out."""
    found: list[tuple[int, bytes | None]] = []
    at = log.log_start_offset if offset is None else offset
    while at < (log.last_stable_offset if isolation else log.log_end_offset):
        fetched = log.read(at, 1 << 20, isolation_level=isolation)
        if not fetched.records:
            break
        at = _consume(fetched, at, found)
    return found


def _consume(fetched: Any, first: int, found: list[tuple[int, bytes | None]]) -> int:
    """One fetch as the Java consumer reads it: an entry of the aborted list counts from its first offset on, until the
    abort marker of its producer."""
    waiting = sorted(fetched.aborted or (), key=lambda entry: entry[1])
    aborting: set[int] = set()
    for buffer in fetched.records:
        for header in scan_all(buffer, 0, _whole_bytes(buffer)):
            while waiting and waiting[0][1] <= header.last_offset:
                aborting.add(waiting.pop(0)[0])
            every = iterate(buffer, header.position, header.end_position)
            if header.is_control:
                if header.record_count and not _is_commit(next(every)):
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                found.extend((record.offset, record.value) for record in every if record.offset >= first)
            end_offset = header.next_offset
    return int(end_offset)


def _whole_bytes(buffer: Any) -> int:
    """The end of the last batch that is not cut. The offset and the length are the first 12 bytes of a batch."""
    at = 0
    while at + 12 <= len(buffer):
        after = at + 12 + int.from_bytes(buffer[at + 8 : at + 12])
        if after > len(buffer):
            break
        at = after
    return at


def _is_commit(record: Any) -> bool:
    return parse_marker(record.key, record.value)[0]


def refused(code: ErrorCode) -> Any:
    """A context that expects exactly this code."""
    return pytest.raises(KafkaError, check=lambda err: err.code is code)

"""All partitions of this broker in its data directories: lock, identity, recovery, placement, deletion, clean stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shim.clock import Clock
    from shim.config import BrokerConfig, TopicConfig
    from shim.faults import Faults
    from shim.storage.data_dir import DataDir
    from shim.storage.log import PartitionLog


class Logs:
    """The partitions by (topic, partition). Event-loop thread only; made by `server`, stopped by it.

    Order of a start: `Logs(...)`; `open_dirs()` locks the directories and reads or writes `meta.properties`;
    `open_metadata_log()`; the metadata store replays it; `start(lookup)` loads the partitions; `stop()`.
    """

    dirs: list[DataDir]
    cluster_id: str
    node_id: int
    # The epoch of this broker's registration, set by the metadata store; `stop` writes it to `.kafka_cleanshutdown`
    # (`{"version":0,"brokerEpoch":N}`): Apache Kafka compares it to tell a clean stop (KIP-966).
    broker_epoch: int
    # (log, producer_id, producer_epoch, commit, offset) after each transaction marker; group offsets hang on it.
    on_marker: list[Callable[[PartitionLog, int, int, bool, int], None]]

    def __init__(self, config: BrokerConfig, clock: Clock, faults: Faults) -> None:
        raise NotImplementedError

    def open_dirs(self, cluster_id: str | None = None) -> str:
        """Lock every `log.dirs` entry, read `meta.properties`, or write it in an empty directory with `cluster_id`
        (default: a fresh random one). Answers the cluster id. Raises StorageError (a clear sentence) for a directory
        in use by another process, of another cluster or node, or not writable."""
        raise NotImplementedError

    def open_metadata_log(self) -> PartitionLog:
        """`__cluster_metadata-0` in `metadata.log.dir` (default: the first log dir), recovered; made when missing.

        Its config has flush.messages=1 and no retention: each `append_batch` answers `Appended.flushed`. Its caller sets
        `leader_epoch` before it appends in a new epoch."""
        raise NotImplementedError

    def start(self, lookup: Callable[[str, int], tuple[bytes, TopicConfig, int] | None]) -> None:
        """Find every partition directory. `lookup(topic, partition)` gives (topic_id, config, leader_epoch), or None when
        metadata does not know it: the directory is set aside with the suffix `-stray`. After a clean stop nothing is read until a
        partition is used; after a crash every partition is recovered here."""
        raise NotImplementedError

    def get(self, topic: str, partition: int) -> PartitionLog:
        """The log; raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR when it is offline."""
        raise NotImplementedError

    def find(self, topic: str, partition: int) -> PartitionLog | None:
        """The log, or None when it is not here or offline."""
        raise NotImplementedError

    def has(self, topic: str, partition: int) -> bool:
        """Whether the partition has a log here, online or not; loads nothing."""
        raise NotImplementedError

    def create(self, topic: str, topic_id: bytes, partition: int, config: TopicConfig) -> PartitionLog:
        """Make the partition in the directory with the fewest partitions; an existing one is answered as it is."""
        raise NotImplementedError

    def delete(self, topic: str, partition: int) -> None:
        """Close the log, wake its readers, rename its directory to `-delete`; files go after `file.delete.delay.ms`.
        The name is free at once."""
        raise NotImplementedError

    def configure(self, topic: str, config: TopicConfig) -> None:
        """A topic's configuration changed."""
        raise NotImplementedError

    def all(self) -> Iterator[PartitionLog]:
        """Every online partition; loads the ones not used yet."""
        raise NotImplementedError

    def retain(self, now_ms: int) -> int:
        """Delete what retention allows (`log.retention.check.interval.ms` calls this); answers segments deleted."""
        raise NotImplementedError

    def stop(self) -> None:
        """Clean stop: flush and close all, write checkpoints, snapshots and the clean-shutdown mark, unlock. Blocks."""
        raise NotImplementedError

    def describe_dirs(self) -> list[Any]:
        """For DescribeLogDirs: per directory path, error code, total and usable bytes, and its partitions' sizes."""
        raise NotImplementedError

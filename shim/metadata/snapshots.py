"""Snapshots of the metadata log: when they are written, what they contain, and what they allow to delete.

A snapshot contains the image at one offset as records. A start replays the newest snapshot and the log after it, so its
time does not depend on the length of the history. Segments and snapshots that a newer snapshot covers are deleted by
`metadata.max.retention.bytes` and `metadata.max.retention.ms`. Source: SnapshotGenerator, MetadataImage.write and
KafkaRaftLog of Kafka 4.3.1.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import CancelledError
from copy import copy

from kafka_shim.cext.batch import BatchError
from kafka_shim.metadata.features import DIRECTORIES, METADATA_VERSION, record_version
from kafka_shim.protocol.records.client_quota_record import ClientQuotaRecord, EntityData
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.partition_record import PartitionRecord
from kafka_shim.protocol.records.producer_ids_record import ProducerIdsRecord
from kafka_shim.protocol.records.topic_record import TopicRecord
from kafka_shim.scheduler import Scheduler
from kafka_shim.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.image import Image, Partition, Topic
    from kafka_shim.metadata.log import MetadataLog

logger = logging.getLogger(__name__)

# A quarter of a millisecond's work, and the pause after it.
RECORDS_BETWEEN_PAUSES, PAUSE_S = 64, 0.00005
# How long after one that failed a snapshot is due again: each tries to take memory, or a full disk's last bytes.
RETRY_MS = 60_000


class SnapshotGenerator:
    """Writes a snapshot when enough bytes were appended or enough time has passed since the last one.

    Owned by `MetadataStore`. Event-loop thread only. What the image contains is noted in one turn of the loop. A
    separate thread encodes it, waits for the fsync of the log and writes the file. Old snapshots and segments are
    deleted at the next commit or at the stop.
    """

    def __init__(self, log: MetadataLog, config: BrokerConfig, clock: Clock) -> None:
        self._log = log
        self._config = config
        self._clock = clock
        self._last_ms = clock.now_ms()
        # What the snapshot that is being written covers, bytes of records, and when the one before was begun. None once
        # it is on the disk.
        self._unwritten: tuple[int, int] | None = None
        # None is due before, because one failed.
        self._retry_ms: int | None = None
        self._writer: Thread | None = None
        self._scheduler = Scheduler(clock)

    def committed(self, image: Image, now_ms: int) -> None:
        """Start a snapshot if one is due. Called after records were appended and applied, outside a metadata
        transaction. Logs every error, because what follows from those records must be done."""
        try:
            self._start_if_due(image, now_ms)
        except (MemoryError, RuntimeError) as err:  # RuntimeError: no memory for a thread
            self._failed(image.last_offset + 1, err)
            self._try_later(now_ms)
        except Exception:
            logger.exception(
                "the metadata snapshot at offset %d failed, a later one replaces it", image.last_offset + 1
            )

    def _start_if_due(self, image: Image, now_ms: int) -> None:
        if self._writer is not None:
            if self._writer.is_alive():
                return
            self._finish(now_ms)
        if self._retry_ms is not None and now_ms < self._retry_ms:
            return
        self._retry_ms = None
        interval_ms = self._config.metadata_log_max_snapshot_interval_ms
        size_bytes = self._log.bytes_after_snapshot
        if size_bytes >= self._config.metadata_log_max_record_bytes_between_snapshots:
            self._start(image, now_ms, f"{size_bytes} bytes of records were appended")
        elif size_bytes > 0 and interval_ms > 0 and now_ms - self._last_ms >= interval_ms:
            self._start(image, now_ms, f"{interval_ms} ms went by")

    def run_periodically(self, image: Image, may_start: Callable[[], bool]) -> None:
        """Start a snapshot of new records too if nothing is committed for `metadata.log.max.snapshot.interval.ms`.
        (Kafka looks at each commit, and commits a record twice a second.) `may_start` returns False in a metadata
        transaction."""
        interval_ms = self._config.metadata_log_max_snapshot_interval_ms
        if interval_ms <= 0:
            return

        def look() -> None:
            now_ms = self._clock.now_ms()
            if may_start():
                self.committed(image, now_ms)
            left_ms = self._last_ms + interval_ms - now_ms
            if 0 < left_ms < interval_ms:
                self._scheduler.after("due earlier", left_ms, look)

        self._scheduler.every("snapshot", interval_ms, look)

    def cancel(self) -> None:
        """Stop the timers."""
        self._scheduler.stop()

    def stop(self, now_ms: int) -> None:
        """Wait for a snapshot that is being written."""
        if self._writer is not None:
            self._writer.join()
            self._finish(now_ms)

    def _start(self, image: Image, now_ms: int, reason: str) -> None:
        end_offset, epoch = image.last_offset + 1, image.last_epoch
        logger.info("metadata snapshot at offset %d: %s", end_offset, reason)
        level = image.features[METADATA_VERSION]
        view = ImageView(image)
        size_bytes = self._log.bytes_after_snapshot
        encode = self._log.begin_snapshot(now_ms, image.last_timestamp_ms)
        self._unwritten, self._last_ms = (size_bytes, self._last_ms), now_ms
        self._log.bytes_after_snapshot = 0  # last: memory may end before

        def content() -> bytes:
            return encode((record, record_version(record, level)) for record in _patiently(image_records(view)))

        arguments = (end_offset, epoch, content, self._log.flushing())
        self._writer = Thread(target=self._write, args=arguments, name="metadata-snapshot", daemon=True)
        self._clock.begin_work()
        try:
            self._writer.start()
        except BaseException:
            self._writer = None
            self._clock.end_work()
            raise

    def _write(self, end_offset: int, epoch: int, content: Callable[[], bytes], flushing: Future[None] | None) -> None:
        try:
            made = content()
            if flushing is not None:
                # A snapshot must not contain records that the log could still lose.
                flushing.result()
            self._log.write_snapshot(end_offset, epoch, made)
            self._unwritten = None
        except (OSError, CancelledError, MemoryError) as err:
            self._failed(end_offset, err)
        except Exception:
            logger.exception("the metadata snapshot at offset %d failed, a later one replaces it", end_offset)
        finally:
            self._clock.end_work()

    def _failed(self, end_offset: int, error: BaseException) -> None:
        reason = error if str(error) else type(error).__name__
        logger.warning("the metadata snapshot at offset %d failed, a later one replaces it: %s", end_offset, reason)

    def _try_later(self, now_ms: int) -> None:
        if self._unwritten is not None:
            size_bytes, self._last_ms = self._unwritten
            self._log.bytes_after_snapshot += size_bytes
            self._unwritten = None
        self._retry_ms = now_ms + RETRY_MS

    def _finish(self, now_ms: int) -> None:
        self._writer = None
        if self._unwritten is not None:
            self._try_later(now_ms)
        config = self._config
        try:
            self._log.prune(config.metadata_max_retention_bytes, config.metadata_max_retention_ms, now_ms)
        except (OSError, BatchError) as err:  # BatchError: an old snapshot is damaged
            logger.warning("old metadata snapshots cannot be deleted, the next one tries again: %s", err)


# --- an image as records


class ImageView:
    """What an image contains now, for another thread: whatever is changed later is a new object, or was copied."""

    __slots__ = (
        "acls",
        "brokers",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "next_producer_id",
        "quotas",
        "scram",
        "topics",
    )

    def __init__(self, image: Image) -> None:
        self.features = dict(image.features)
        # Changes of a registration are made in its record.
        self.brokers = [copy(record) for record in image.brokers.values()]
        self.controllers = [copy(record) for record in image.controllers.values()]
        self.topics = [(topic, topic.partitions.copy()) for topic in image.topics.values()]
        self.configs = dict(image.configs)
        self.quotas = dict(image.quotas)
        self.next_producer_id = image.next_producer_id
        self.acls = list(image.acls.values())
        self.scram = list(image.scram.values())
        self.delegation_tokens = list(image.delegation_tokens.values())


def _patiently(records: Iterator[Any]) -> Iterator[Any]:
    """Yield the records, and let go of the interpreter's lock after some: without a pause the event loop would wait for
    it up to 5 ms, again and again."""
    pause = threading.Event()
    for number, record in enumerate(records, 1):
        yield record
        if not number % RECORDS_BETWEEN_PAUSES:
            pause.wait(PAUSE_S)


def image_records(image: ImageView) -> Iterator[Any]:
    """Yield the records that build this image from an empty one, in Kafka's order, metadata.version first."""
    features = image.features
    with_directories = features.get(METADATA_VERSION, 0) >= DIRECTORIES
    for name in sorted(features, key=lambda one: (one != METADATA_VERSION, one)):
        yield FeatureLevelRecord(name=name, feature_level=features[name])
    yield from image.brokers
    yield from image.controllers
    for topic, partitions in image.topics:
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition in partitions:
            yield _partition_record(topic, partition, with_directories)
    for (kind, resource), options in image.configs.items():
        for option, value in options.items():
            yield ConfigRecord(resource_type=kind, resource_name=resource, name=option, value=value)
    for entity, quotas in image.quotas.items():
        pairs = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        for key, limit in quotas.items():
            yield ClientQuotaRecord(entity=pairs, key=key, value=limit, remove=False)
    if image.next_producer_id > 0:
        # The image does not contain the broker that reserved the block.
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls
    yield from image.scram
    yield from image.delegation_tokens


def _partition_record(topic: Topic, partition: Partition, with_directories: bool) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition.partition,
        topic_id=topic.topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if with_directories else [],
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )

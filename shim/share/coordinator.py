"""The share coordinator: the state of share partitions in `__share_group_state` (Kafka: ShareCoordinatorService).

The rules are in `shard`, and `shard_loader` reads it from the log. A change is decided, appended and applied without an
await in between.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafka_shim.scheduler import Scheduler, Slice
from kafka_shim.share.client_errors import NotAppliedError
from kafka_shim.share.shard_loader import ShardLoader
from kafka_shim.storage.batch_sizes import divided
from kafka_shim.storage.results import COORDINATOR_ERRORS
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.image import Topic
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flushes
    from kafka_shim.share.records import SharePartitionKey, ShareRecord
    from kafka_shim.share.shard import ShareStateShard
    from kafka_shim.share.state import ShareGroupOffset, StateBatch
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.share")

# Records per batch where there may be many (cold share partitions, deleted topics).
RECORDS_PER_BATCH = 500
# Snapshots of cold share partitions that are written at once: a third of a millisecond. So many pieces of a state count
# as one more.
SNAPSHOTS_PER_BATCH = 32
PIECES_WRITTEN = 64
# Such batches, or partitions that are pruned, in one slice, also with a virtual clock.
MOST_AT_ONCE = 8
# How often the tombstones of deleted topics that could not be written are tried again.
TOMBSTONE_RETRY_MS = 60_000


class ShareCoordinator:
    """Owned by the broker. Event-loop thread only. Methods raise KafkaError with the code for the response, and return
    the fsyncs that must finish before it."""

    def __init__(
        self, *, clock: Clock, config: BrokerConfig, logs: Logs, metadata: MetadataStore, faults: Faults
    ) -> None:
        self._clock = clock
        self._config = config
        self._logs = logs
        self._metadata = metadata
        self._faults = faults
        self._scheduler = Scheduler(clock)
        self._loader = ShardLoader(
            config=config, logs=logs, metadata=metadata, scheduler=self._scheduler, on_loaded=self._bury_unknown
        )
        # Those that still have states of deleted topics: a full disk refused the tombstones, mostly.
        self._stale: set[int] = set()

    # --- life

    def start(self) -> None:
        """Subscribe to topic changes, and start the periodic work."""
        self._metadata.on_topic_deleted.append(self._on_topic_deleted)
        config = self._config
        self._scheduler.every("prune", config.share_coordinator_state_topic_prune_interval_ms, self.prune)
        interval_ms = config.share_coordinator_cold_partition_snapshot_interval_ms
        self._scheduler.every("cold snapshots", interval_ms, self.snapshot_cold)
        self._loader.start()

    def stop(self) -> None:
        """Stop the periodic work."""
        self._scheduler.stop()

    # --- requests

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Flushes:
        """InitializeShareGroupState of one share partition. Raises FENCED_STATE_EPOCH, INVALID_REQUEST,
        UNKNOWN_TOPIC_OR_PARTITION."""
        partition, shard = self._shard_of(key)
        now_ms = self._clock.now_ms()
        record = shard.initialize(key, state_epoch, start_offset, now_ms)
        self._check_topic(key)
        return self._write(partition, shard, [record], now_ms)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        state_batches: Sequence[StateBatch],
    ) -> Flushes:
        """WriteShareGroupState of one share partition. Raises FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, INVALID_REQUEST,
        UNKNOWN_TOPIC_OR_PARTITION."""
        partition, shard = self._shard_of(key)
        now_ms = self._clock.now_ms()
        record = shard.write(
            key, state_epoch, leader_epoch, start_offset, delivery_complete_count, state_batches, now_ms
        )
        self._check_topic(key)
        return self._write(partition, shard, [record], now_ms)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> tuple[ShareGroupOffset, Flushes]:
        """ReadShareGroupState of one share partition. Raises FENCED_LEADER_EPOCH, INVALID_REQUEST,
        UNKNOWN_TOPIC_OR_PARTITION."""
        partition, shard = self._shard_of(key)
        state = shard.read(key, leader_epoch)
        self._check_topic(key)
        now_ms = self._clock.now_ms()
        record = shard.take_leadership(key, leader_epoch, now_ms)
        if record is None:
            return state, ()
        return state, self._write(partition, shard, [record], now_ms)

    def read_summary(self, key: SharePartitionKey) -> ShareGroupOffset:
        """ReadShareGroupStateSummary of one share partition. Raises INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION."""
        _, shard = self._shard_of(key)
        state = shard.read_summary(key)
        self._check_topic(key)
        return state

    def delete(self, key: SharePartitionKey) -> Flushes:
        """DeleteShareGroupState of one share partition. Raises INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION."""
        partition, shard = self._shard_of(key)
        record = shard.delete(key)
        self._check_topic(key)
        return () if record is None else self._write(partition, shard, [record], self._clock.now_ms())

    def load(self, key: SharePartitionKey) -> Generator[None, None, None]:
        """Read the partition that holds this share partition, in steps, if that was not done."""
        return self._loader.load(self.partition_for(key))

    def partition_for(self, key: SharePartitionKey) -> int:
        """Returns the partition of `__share_group_state` that holds this share partition, also if the topic does not
        exist yet."""
        group_id, topic_id, partition = key
        return self.partition_of(f"{group_id}:{uuid_text(topic_id)}:{partition}")

    def partition_of(self, text: str) -> int:
        """As `partition_for`, of a key in the form of FindCoordinator."""
        return self._loader.partitions.of(text)

    # --- periodic work

    def prune(self) -> None:
        """Delete the records that newer snapshots made redundant: of some partitions now, of others on later turns."""
        self._scheduler.in_slices("prune in slices", self._prunings())

    def _prunings(self) -> Iterator[None]:
        part = Slice(self._clock, MOST_AT_ONCE)
        for partition, shard in self._loader.all_loaded():
            if self._loader.loaded(partition) is not shard:
                continue  # it was loaded again since the slice before
            offset = shard.last_redundant_offset()
            log = self._logs.find(SHARE_GROUP_STATE_TOPIC, partition)
            if offset is None or log is None or offset <= log.log_start_offset:
                continue
            try:
                log.delete_records_before(offset)
            except KafkaError as error:
                logger.warning("cannot prune %s-%d: %s", SHARE_GROUP_STATE_TOPIC, partition, error)
            if part.is_over():
                yield
                part.begin()

    def snapshot_cold(self) -> None:
        """Write new snapshots of share partitions without writes, so that the records before them can be pruned: some
        now, others on later turns."""
        self._scheduler.in_slices("cold snapshots in slices", self._cold_snapshots())

    def _cold_snapshots(self) -> Iterator[None]:
        interval_ms = self._config.share_coordinator_cold_partition_snapshot_interval_ms
        part = Slice(self._clock, MOST_AT_ONCE)
        for partition, shard in self._loader.all_loaded():
            cold = shard.cold(interval_ms, self._clock.now_ms())
            for some in _portions(shard, cold):
                if self._loader.loaded(partition) is not shard:
                    break  # it was loaded again since the slice before
                now_ms = self._clock.now_ms()
                records = shard.snapshots(some, interval_ms, now_ms)
                if not self._write_many(partition, shard, records, now_ms):
                    break
                if part.is_over():
                    yield
                    part.begin()

    def _on_topic_deleted(self, topic: Topic) -> None:
        if topic.name == SHARE_GROUP_STATE_TOPIC:
            self._loader.forget_all()
            self._scheduler.cancel("tombstones")
            self._stale.clear()
            return
        # A partition that is not loaded, or not current, is compared with the topics that exist when it is loaded.
        for partition, shard in self._loader.all_loaded():
            # Where those of earlier topics are left they go too: `_bury` counts the partition as clean then.
            if partition in self._stale:
                self._bury_unknown(partition, shard)
            else:
                self._bury(partition, shard, shard.delete_topic(topic.topic_id))

    def _bury_unknown(self, partition: int, shard: ShareStateShard) -> None:
        self._bury(partition, shard, shard.delete_unknown_topics(self._metadata.image.topics_by_id))

    def _bury(self, partition: int, shard: ShareStateShard, tombstones: Sequence[ShareRecord]) -> None:
        """Write the tombstones of deleted topics, now or later."""
        if self._write_many(partition, shard, tombstones, self._clock.now_ms()):
            self._stale.discard(partition)
            return
        self._stale.add(partition)
        if not self._scheduler.is_scheduled("tombstones"):
            self._scheduler.every("tombstones", TOMBSTONE_RETRY_MS, self._bury_again)

    def _bury_again(self) -> None:
        for partition in list(self._stale):
            shard = self._loader.loaded(partition)
            if shard is not None:
                self._bury_unknown(partition, shard)
            else:
                with suppress(KafkaError):
                    self._loader.shard(partition)  # it is loaded, now or in steps
        if not self._stale:
            self._scheduler.cancel("tombstones")

    # --- writing

    def _shard_of(self, key: SharePartitionKey) -> tuple[int, ShareStateShard]:
        partition = self.partition_for(key)
        return partition, self._loader.shard(partition)

    def _check_topic(self, key: SharePartitionKey) -> None:
        topic = self._metadata.image.topics_by_id.get(key[1])
        if topic is None or key[2] >= len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def _write(self, partition: int, shard: ShareStateShard, records: Sequence[ShareRecord], now_ms: int) -> Flushes:
        entries = [(*record.encode(), now_ms, ()) for record in records]
        codec = self._config.share_coordinator_state_topic_compression_codec
        batch = cext_records.build(entries, codec=codec, base_sequence=0)  # as Kafka's CoordinatorRuntime
        shard.is_current = False  # until all is applied: memory may end anywhere
        try:
            flushes = self._append_and_apply(partition, shard, records, batch, now_ms)
        except MemoryError as error:
            raise NotAppliedError(ErrorCode.NOT_COORDINATOR, "no memory was left to apply the records") from error
        shard.is_current = True
        return flushes

    def _append_and_apply(
        self, partition: int, shard: ShareStateShard, records: Sequence[ShareRecord], batch: bytearray, now_ms: int
    ) -> Flushes:
        try:
            if self._faults.armed:
                self._faults.reach("share.before_append", partition=partition)
            log = self._logs.get(SHARE_GROUP_STATE_TOPIC, partition)
            appended = log.append_batch(batch, now_ms=now_ms)
        except KafkaError as error:
            shard.is_current = True
            raise KafkaError(COORDINATOR_ERRORS.get(error.code, error.code), error.message) from error
        if self._faults.armed:
            self._faults.reach("share.after_append", partition=partition)
        for number, record in enumerate(records):
            shard.apply(record, appended.base_offset + number)
        return () if appended.flushed is None else (appended.flushed,)

    def _write_many(self, partition: int, shard: ShareStateShard, records: Sequence[ShareRecord], now_ms: int) -> bool:
        """Returns whether all could be written."""
        max_bytes = self._metadata.topic_config(SHARE_GROUP_STATE_TOPIC).max_message_bytes
        for part in divided([record.encode() for record in records], RECORDS_PER_BATCH, max_bytes):
            try:
                self._write(partition, shard, records[part], now_ms)
            except KafkaError as error:
                refusals = self._logs.services.refusals
                refusals.write("cannot write to %s-%d: %s", SHARE_GROUP_STATE_TOPIC, partition, error)
                return False
        return True


def _portions(shard: ShareStateShard, keys: Sequence[SharePartitionKey]) -> Iterator[list[SharePartitionKey]]:
    """Yields those whose snapshots are written at once."""
    some: list[SharePartitionKey] = []
    count = 0
    for key in keys:
        some.append(key)
        state = shard.states.get(key)
        count += 1 if state is None else 1 + len(state.state_batches) // PIECES_WRITTEN
        if count >= SNAPSHOTS_PER_BATCH:
            yield some
            some, count = [], 0
    if some:
        yield some

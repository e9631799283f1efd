"""The share coordinator: the state of share partitions in `__share_group_state` (Kafka: ShareCoordinatorService).

The rules are in `shard`. A change is decided, appended and applied without an await in between. A partition is loaded
on its first use, or soon after start-up. A large one is loaded in steps, and requests meanwhile get
COORDINATOR_LOAD_IN_PROGRESS, as from Kafka.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from kafka_shim.cext import records as cext_records
from kafka_shim.cext.batch import BatchError
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafka_shim.java_hash import internal_partition
from kafka_shim.scheduler import Scheduler, take_one
from kafka_shim.share.client_errors import NotAppliedError
from kafka_shim.share.records import RecordError, ShareRecord, decode
from kafka_shim.share.shard import ShareStateShard
from kafka_shim.storage.batch_sizes import divided
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.image import Topic
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flushes
    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.share.state import ShareGroupOffset, StateBatch
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.share")

# The number of bytes that one request may load before its response.
READ_AT_ONCE_BYTES = 1 << 19
# Records per step of a load: a few milliseconds.
STEP_RECORDS = 1000
# Background loading begins this long after start-up, and leaves time for other work between its steps.
LOAD_DELAY_MS = 100
STEP_DELAY_MS = 1
# Records per batch where there may be many (cold share partitions, deleted topics).
RECORDS_PER_BATCH = 500
# How often the tombstones of deleted topics that could not be written are tried again.
TOMBSTONE_RETRY_MS = 60_000

# The response's error code for an error of the log.
_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


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
        self._shards: dict[int, ShareStateShard] = {}
        # The partitions that are being loaded.
        self._loading: dict[int, Generator[None, None, None]] = {}
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
        if SHARE_GROUP_STATE_TOPIC in self._metadata.image.topics:
            self._scheduler.after("load", LOAD_DELAY_MS, self._load_rest)

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

    def partition_for(self, key: SharePartitionKey) -> int:
        """Returns the partition of `__share_group_state` that holds this share partition, also if the topic does not
        exist yet."""
        group_id, topic_id, partition = key
        return internal_partition(f"{group_id}:{uuid_text(topic_id)}:{partition}", self._partition_count())

    # --- periodic work

    def prune(self) -> None:
        """Delete the records that newer snapshots made redundant."""
        for partition, shard in self._current():
            offset = shard.last_redundant_offset()
            log = self._logs.find(SHARE_GROUP_STATE_TOPIC, partition)
            if offset is None or log is None or offset <= log.log_start_offset:
                continue
            try:
                log.delete_records_before(offset)
            except KafkaError as error:
                logger.warning("cannot prune %s-%d: %s", SHARE_GROUP_STATE_TOPIC, partition, error)

    def snapshot_cold(self) -> None:
        """Write new snapshots of share partitions without writes, so that the records before them can be pruned."""
        interval_ms = self._config.share_coordinator_cold_partition_snapshot_interval_ms
        now_ms = self._clock.now_ms()
        for partition, shard in self._current():
            self._write_many(partition, shard, shard.snapshot_cold(interval_ms, now_ms), now_ms)

    def _on_topic_deleted(self, topic: Topic) -> None:
        if topic.name == SHARE_GROUP_STATE_TOPIC:
            self._scheduler.cancel("load")
            self._scheduler.cancel("tombstones")
            self._shards.clear()
            self._loading.clear()
            self._stale.clear()
            return
        # A partition that is not loaded, or not current, is compared with the topics that exist when it is loaded.
        for partition, shard in self._current():
            # Where those of earlier topics are left they go too: `_bury` counts the partition as clean then.
            is_stale = partition in self._stale
            known = self._metadata.image.topics_by_id
            self._bury(
                partition,
                shard,
                shard.delete_unknown_topics(known) if is_stale else shard.delete_topic(topic.topic_id),
            )

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
            shard = self._shards.get(partition)
            if shard is not None and shard.is_current:
                self._bury(partition, shard, shard.delete_unknown_topics(self._metadata.image.topics_by_id))
            else:
                with suppress(KafkaError):
                    self._shard(partition)  # it is loaded, now or in steps
        if not self._stale:
            self._scheduler.cancel("tombstones")

    def _current(self) -> list[tuple[int, ShareStateShard]]:
        return [(partition, shard) for partition, shard in self._shards.items() if shard.is_current]

    # --- writing

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
            raise KafkaError(_APPEND_ERRORS.get(error.code, error.code), error.message) from error
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

    # --- loading

    def _partition_count(self) -> int:
        topic = self._metadata.image.topics.get(SHARE_GROUP_STATE_TOPIC)
        if topic is not None:
            return len(topic.partitions)
        return self._config.share_coordinator_state_topic_num_partitions

    def _shard_of(self, key: SharePartitionKey) -> tuple[int, ShareStateShard]:
        """Returns the partition and its state. Raises COORDINATOR_LOAD_IN_PROGRESS while a large one is being loaded,
        and NOT_COORDINATOR if it does not exist, is offline or cannot be read now."""
        partition = self.partition_for(key)
        return partition, self._shard(partition)

    def _shard(self, partition: int) -> ShareStateShard:
        shard = self._shards.get(partition)
        if shard is not None and shard.is_current:
            return shard
        if shard is not None:
            del self._shards[partition]
        if partition not in self._loading:
            try:
                log = self._log(partition)
                self._loading[partition] = self._load(partition, log)
                if log is None or log.size_bytes <= READ_AT_ONCE_BYTES:
                    self._finish(partition)
                    return self._shards[partition]
            except MemoryError:
                self._loading.pop(partition, None)
                raise
            except OSError as error:
                self._loading.pop(partition, None)
                raise KafkaError(
                    ErrorCode.NOT_COORDINATOR, f"{SHARE_GROUP_STATE_TOPIC}-{partition}: {error}"
                ) from error
        if not self._scheduler.is_scheduled("load"):
            self._scheduler.in_slices("load", self._load_all(), STEP_DELAY_MS)
        raise KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{SHARE_GROUP_STATE_TOPIC}-{partition} is being loaded: try again"
        )

    def _log(self, partition: int) -> PartitionLog | None:
        """Returns the log, or None if it is empty. Raises NOT_COORDINATOR if it does not exist, as nobody looked up
        a coordinator yet, if it is offline or cannot be read now."""
        try:
            log = self._logs.get(SHARE_GROUP_STATE_TOPIC, partition)
        except KafkaError as error:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, error.message) from error
        return None if log.log_end_offset == log.log_start_offset else log

    def _finish(self, partition: int) -> None:
        for _ in self._loading[partition]:
            pass
        self._loading.pop(partition, None)

    def _load_rest(self) -> None:
        self._scheduler.in_slices("load", self._load_all(), STEP_DELAY_MS)

    def _load_all(self) -> Generator[None, None, None]:
        """Load the partitions that requests wait for, then all others."""
        for partition in range(self._partition_count()):
            yield from self._load_asked()
            if partition in self._shards:
                continue
            try:
                self._loading[partition] = self._load(partition, self._log(partition))
            except KafkaError as error:
                logger.warning("cannot read %s-%d: %s", SHARE_GROUP_STATE_TOPIC, partition, error)
                continue
        yield from self._load_asked()

    def _load_asked(self) -> Generator[None, None, None]:
        while self._loading:
            partition = next(reversed(self._loading))
            try:
                is_over = not take_one(self._loading[partition])
            except (OSError, KafkaError, MemoryError):
                logger.exception("cannot read %s-%d; the next request tries again", SHARE_GROUP_STATE_TOPIC, partition)
                is_over = True
            if is_over:
                self._loading.pop(partition, None)
            yield

    def _load(self, partition: int, log: PartitionLog | None) -> Generator[None, None, None]:
        shard = ShareStateShard(self._config.share_coordinator_snapshot_update_records_per_snapshot)
        count = 0
        for buffer, batch in () if log is None else log.batches():
            try:
                for record in cext_records.iterate(buffer):
                    if record.key is not None and log is not None and record.offset >= log.log_start_offset:
                        self._replay(shard, partition, record.offset, record.key, record.value)
            except BatchError as error:
                logger.warning(
                    "skipping a batch of %s-%d at %d: %s", SHARE_GROUP_STATE_TOPIC, partition, batch.base_offset, error
                )
            count += batch.record_count
            if count >= STEP_RECORDS:
                count = 0
                yield
        self._bury(partition, shard, shard.delete_unknown_topics(self._metadata.image.topics_by_id))
        if not shard.is_current:
            raise MemoryError(f"no memory was left to load {SHARE_GROUP_STATE_TOPIC}-{partition}")
        self._shards[partition] = shard

    @staticmethod
    def _replay(shard: ShareStateShard, partition: int, offset: int, key: bytes, value: bytes | None) -> None:
        # Kafka puts the records of several requests into one batch: the others must not be lost with this one.
        try:
            record = decode(key, value)
        except RecordError as error:
            logger.warning("skipping the record of %s-%d at %d: %s", SHARE_GROUP_STATE_TOPIC, partition, offset, error)
        else:
            shard.apply(record, offset)

"""Reads the partitions of `__share_group_state` into shards (Kafka: CoordinatorRuntime, its loader).

A partition is loaded on its first use, or soon after start-up. A large one is loaded in steps, and requests meanwhile
get COORDINATOR_LOAD_IN_PROGRESS, as from Kafka.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafka_shim.metadata.partition_count import PartitionCount
from kafka_shim.scheduler import take_one
from kafka_shim.share.records import RecordError, decode
from kafka_shim.share.shard import ShareStateShard
from kafka_shim.storage.coordinator_logs import find_records, records_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.scheduler import Scheduler
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.share")

# The number of bytes that one request may load before its response: some 300 changes, ten milliseconds or two.
READ_AT_ONCE_BYTES = 1 << 16
# Records per step of a load: a few milliseconds. So many bytes count as one more: a snapshot of a state in thousands of
# pieces takes as long as dozens of changes.
STEP_RECORDS = 100
BYTES_DECODED = 1024
# Background loading begins this long after start-up, and leaves time for other work between its steps.
LOAD_DELAY_MS = 100
STEP_DELAY_MS = 1


class ShardLoader:
    """Owned by the share coordinator. Event-loop thread only. `on_loaded` gets each shard when its partition has been
    read, before a request does."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        logs: Logs,
        metadata: MetadataStore,
        scheduler: Scheduler,
        on_loaded: Callable[[int, ShareStateShard], None],
    ) -> None:
        self._config = config
        self._logs = logs
        self._metadata = metadata
        self._scheduler = scheduler
        self._on_loaded = on_loaded
        self._shards: dict[int, ShareStateShard] = {}
        # Which partition holds a share partition's state.
        self.partitions = PartitionCount(
            metadata, SHARE_GROUP_STATE_TOPIC, config.share_coordinator_state_topic_num_partitions
        )
        # The partitions that are being loaded.
        self._loading: dict[int, Generator[None, None, None]] = {}

    def start(self) -> None:
        """Load all partitions soon, if the topic exists."""
        if SHARE_GROUP_STATE_TOPIC in self._metadata.image.topics:
            self._scheduler.after("load", LOAD_DELAY_MS, self._load_in_slices)

    def forget_all(self) -> None:
        """The topic was deleted."""
        self._scheduler.cancel("load")
        self.partitions.forget()
        self._shards.clear()
        self._loading.clear()

    def loaded(self, partition: int) -> ShareStateShard | None:
        """Returns the shard if it is loaded and current; loads nothing."""
        shard = self._shards.get(partition)
        return shard if shard is not None and shard.is_current else None

    def all_loaded(self) -> list[tuple[int, ShareStateShard]]:
        """Returns the partitions that are loaded and current."""
        return [(partition, shard) for partition, shard in self._shards.items() if shard.is_current]

    def shard(self, partition: int) -> ShareStateShard:
        """Returns the state of a partition. Raises COORDINATOR_LOAD_IN_PROGRESS while a large one is being loaded, and
        NOT_COORDINATOR if it does not exist, is offline or cannot be read now."""
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
            self._load_in_slices()
        raise KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{SHARE_GROUP_STATE_TOPIC}-{partition} is being loaded: try again"
        )

    def load(self, partition: int) -> Generator[None, None, None]:
        """Load a partition in the steps of whoever needs it. Does nothing if it is loaded, or cannot be now."""
        with suppress(KafkaError):
            self.shard(partition)
        while partition in self._loading and self._step(partition):
            yield

    def _log(self, partition: int) -> PartitionLog | None:
        return find_records(self._logs, SHARE_GROUP_STATE_TOPIC, partition)

    def _finish(self, partition: int) -> None:
        for _ in self._loading[partition]:
            pass
        self._loading.pop(partition, None)

    def _load_in_slices(self) -> None:
        self._scheduler.in_slices("load", self._load_all(), STEP_DELAY_MS)

    def _load_all(self) -> Generator[None, None, None]:
        """Load the partitions that requests wait for, then all others."""
        for partition in range(self.partitions.count()):
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
            self._step(next(reversed(self._loading)))
            yield

    def _step(self, partition: int) -> bool:
        """Returns whether there is more to read."""
        try:
            if take_one(self._loading[partition]):
                return True
        except (OSError, KafkaError, MemoryError):
            logger.exception("cannot read %s-%d; the next request tries again", SHARE_GROUP_STATE_TOPIC, partition)
        self._loading.pop(partition, None)
        return False

    def _load(self, partition: int, log: PartitionLog | None) -> Generator[None, None, None]:
        shard = ShareStateShard(self._config.share_coordinator_snapshot_update_records_per_snapshot)
        if log is not None:
            yield from _replay(shard, log)
        self._on_loaded(partition, shard)
        if not shard.is_current:
            raise MemoryError(f"no memory was left to load {SHARE_GROUP_STATE_TOPIC}-{partition}")
        self._shards[partition] = shard


def _replay(shard: ShareStateShard, log: PartitionLog) -> Generator[None, None, None]:
    count = 0
    for buffer, batch in log.batches():
        for stored in records_of(log, buffer, batch, logger):
            if stored.key is None or stored.offset < log.log_start_offset:
                continue
            # Kafka puts the records of several requests into one batch: the others must not be lost with this one.
            try:
                record = decode(stored.key, stored.value)
            except RecordError as error:
                logger.warning("skipping the record of %s at %d: %s", log.name, stored.offset, error)
            else:
                shard.apply(record, stored.offset)
        count += batch.record_count + batch.size_bytes // BYTES_DECODED
        if count >= STEP_RECORDS:
            count = 0
            yield

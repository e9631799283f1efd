"""The interface of the share coordinator to the broker's other parts: plain calls instead of requests, because there is
one broker (Kafka: org.apache.kafka.server.share.persister.Persister, ShareGroupConfigProvider)."""

from __future__ import annotations

from kafka_shim.durations import by_duration_ms
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafka_shim.metadata.image import RESOURCE_GROUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import TypeVar

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.line_limit import LineLimit
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flushes
    from kafka_shim.share.coordinator import ShareCoordinator
    from kafka_shim.share.records import SharePartitionKey
    from kafka_shim.share.state import StateBatch
    from kafka_shim.storage.logs import Logs

    T = TypeVar("T")

EARLIEST = "earliest"
LATEST = "latest"
# Before all timestamps that a record can have.
LONGEST_MS = 1 << 62
READ_COMMITTED = "read_committed"


class ShareStatePersister:
    """Owned by the broker. Event-loop thread only. Errors are those of the share coordinator's requests."""

    def __init__(
        self, *, clock: Clock, config: BrokerConfig, logs: Logs, metadata: MetadataStore, faults: Faults
    ) -> None:
        self._clock = clock
        self._config = config
        self._logs = logs
        self._metadata = metadata
        self._faults = faults
        self._started: ShareCoordinator | None = None

    # --- life

    def start(self) -> None:
        """Start the share coordinator if there may be state; else its first use starts it."""
        if SHARE_GROUP_STATE_TOPIC in self._metadata.image.topics:
            self.coordinator  # noqa: B018 starts it

    def stop(self) -> None:
        """Stop the share coordinator."""
        if self._started is not None:
            self._started.stop()

    @property
    def coordinator(self) -> ShareCoordinator:
        """The share coordinator."""
        if self._started is None:
            from kafka_shim.share.coordinator import ShareCoordinator

            self._started = ShareCoordinator(
                clock=self._clock,
                config=self._config,
                logs=self._logs,
                metadata=self._metadata,
                faults=self._faults,
            )
            self._started.start()
        return self._started

    @property
    def refusals(self) -> LineLimit:
        """What the log says of states that cannot be written: a full disk refuses those of every request."""
        return self._logs.services.refusals

    # --- state

    def _look_up(self) -> ShareCoordinator:
        """Returns the share coordinator, whose topic the first look-up creates. Raises COORDINATOR_NOT_AVAILABLE if it
        cannot be created."""
        if SHARE_GROUP_STATE_TOPIC not in self._metadata.image.topics:
            try:
                self._metadata.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
            except KafkaError as error:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error
        return self.coordinator

    def initialize_state(
        self, group_id: str, topic_id: bytes, partition: int, state_epoch: int, start_offset: int
    ) -> Flushes:
        """Have a share partition start over. A start offset of -1: the reader decides it. Raises FENCED_STATE_EPOCH,
        INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION."""
        return self._look_up().initialize((group_id, topic_id, partition), state_epoch, start_offset)

    def read_state(
        self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int
    ) -> tuple[int, int, int, list[StateBatch]]:
        """Returns (state epoch, start offset or -1, delivery complete count or -1, state batches). Readers with an
        older leader epoch are fenced from then on. Raises FENCED_LEADER_EPOCH, INVALID_REQUEST (not initialised),
        UNKNOWN_TOPIC_OR_PARTITION."""
        # A leader epoch that is lost with an unsynced log fences nobody: the broker's restart began a newer one.
        state, _ = self._look_up().read((group_id, topic_id, partition), leader_epoch)
        return state.state_epoch, state.start_offset, state.delivery_complete_count, list(state.state_batches)

    def write_state(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        state_batches: Sequence[StateBatch],
    ) -> Flushes:
        """Merge these batches into the state, and set the start offset unless it is -1. Returns the fsyncs that must
        finish before the response. Raises FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, INVALID_REQUEST (not initialised),
        UNKNOWN_TOPIC_OR_PARTITION."""
        key = group_id, topic_id, partition
        return self._look_up().write(
            key, state_epoch, leader_epoch, start_offset, delivery_complete_count, state_batches
        )

    def read_summary(self, group_id: str, topic_id: bytes, partition: int) -> tuple[int, int, int, int]:
        """Returns (state epoch, leader epoch, start offset or -1, delivery complete count or -1); without a state
        (0, 0, -1, -1). Raises INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION."""
        state = self._look_up().read_summary((group_id, topic_id, partition))
        return state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count

    def delete_state(self, group_id: str, topic_id: bytes, partition: int) -> Flushes:
        """Delete the state of a share partition. Raises INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION."""
        return self._look_up().delete((group_id, topic_id, partition))

    def once_loaded(self, key: SharePartitionKey, call: Callable[[], T]) -> Generator[None, None, T]:
        """Returns what the call returns. If the state of this share partition is still being read after a start, it is
        made again behind that, as Kafka's PersisterStateManager tries again. Raises what the call raises."""
        try:
            return call()
        except KafkaError as error:
            if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise
        yield from self.coordinator.load(key)
        return call()

    # --- options of a group (Kafka: ShareGroupConfigProvider)

    def _option(self, group_id: str, name: str) -> str | None:
        """A group's own option; it is stored as it was given, and counts without blanks around it."""
        text = self._metadata.image.config_of(RESOURCE_GROUP, group_id).get(name)
        return text if text is None else text.strip()

    def _number(self, group_id: str, name: str, default: int, least: int, most: int) -> int:
        """A group's option within the broker's bounds, which may have changed since the option was stored."""
        text = self._option(group_id, name)
        return default if text is None else min(max(int(text), least), most)

    def record_lock_duration_ms(self, group_id: str) -> int:
        """`share.record.lock.duration.ms`: how long a record stays acquired."""
        config = self._config
        return self._number(
            group_id,
            "share.record.lock.duration.ms",
            config.group_share_record_lock_duration_ms,
            config.group_share_min_record_lock_duration_ms,
            config.group_share_max_record_lock_duration_ms,
        )

    def delivery_count_limit(self, group_id: str) -> int:
        """`share.delivery.count.limit`: how often a record is delivered at most."""
        config = self._config
        return self._number(
            group_id,
            "share.delivery.count.limit",
            config.group_share_delivery_count_limit,
            config.group_share_min_delivery_count_limit,
            config.group_share_max_delivery_count_limit,
        )

    def partition_max_record_locks(self, group_id: str) -> int:
        """`share.partition.max.record.locks`: the number of records in flight of a share partition."""
        config = self._config
        return self._number(
            group_id,
            "share.partition.max.record.locks",
            config.group_share_partition_max_record_locks,
            config.group_share_min_partition_max_record_locks,
            config.group_share_max_partition_max_record_locks,
        )

    def is_read_committed(self, group_id: str) -> bool:
        """`share.isolation.level`: whether only committed records are delivered."""
        return self._option(group_id, "share.isolation.level") == READ_COMMITTED

    def may_renew(self, group_id: str) -> bool:
        """`share.renew.acknowledge.enable`: whether an acknowledgement may renew the lock of a record."""
        return (self._option(group_id, "share.renew.acknowledge.enable") or "true").lower() == "true"

    def auto_offset_reset(self, group_id: str) -> str | int:
        """`share.auto.offset.reset`: `earliest`, `latest`, or for `by_duration:` its duration in milliseconds. A value
        that Kafka does not read may have been stored by an earlier version: it counts as the default."""
        name = "share.auto.offset.reset"
        value = self._option(group_id, name) or LATEST
        if value in (EARLIEST, LATEST):
            return value
        try:
            return min(by_duration_ms(value), LONGEST_MS)
        except ValueError as error:
            self.refusals.write("share group %s begins at the latest offset, its %s: %s", group_id, name, error)
            return LATEST

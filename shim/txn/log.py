"""`__transaction_state`: the latest record of every transactional id. It is replayed at start-up and then appended to.

`TransactionLog.apply` is the only function that turns a record into state, at start-up and on the live path.
"""

from __future__ import annotations

import logging
from struct import error as StructError

from kafka_shim.cext import records as cext_records
from kafka_shim.cext.transaction_log import SlotBase, TransactionLogBase
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC
from kafka_shim.java_hash import internal_partition
from kafka_shim.storage.batch_sizes import divided
from kafka_shim.storage.coordinator_logs import records_of
from kafka_shim.storage.local_log import NEVER
from kafka_shim.storage.open_files import OUT_OF_RESOURCES
from kafka_shim.storage.results import COORDINATOR_ERRORS, StorageError
from kafka_shim.txn import records
from kafka_shim.txn.explain import SHOWN_PARTITIONS
from kafka_shim.txn.partition_sets import PartitionSets
from kafka_shim.txn.state import union
from kafka_shim.txn.transaction import ONGOING, PREPARE_ABORT, PREPARE_COMMIT, TV1, TV2, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from kafka_shim.cext.log_base import Appended, Verification
    from kafka_shim.cext.records import Record
    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.image import Topic
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flush
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs
    from kafka_shim.txn.explain import Explanations
    from kafka_shim.txn.transaction import TopicPartition, Transaction

    # As in `admission`.
    Admission = Verification | None | KafkaError

logger = logging.getLogger("kafka_shim.txn")

FEATURE = "transaction.version"
# The maximum number of tombstones of expired ids in one batch.
TOMBSTONES_PER_BATCH = 500
STATES = tuple(State)
# The state transitions whose level may come from a client's request.
_OF_CLIENTS = frozenset({ONGOING, PREPARE_COMMIT, PREPARE_ABORT})
# One object for the slots of all ids that have no trouble. It is never changed.
NOTHING_SAID: dict[TopicPartition | None, str] = {}


class Slot(SlotBase):
    """One transactional id (Kafka's TransactionMetadata): its value, and the state that is only in memory.

    `pending` (Kafka's pending state) is set while the end is being written, and stays set if a marker cannot be
    written. `unmarked` are the partitions without a marker. `stuck` is the reason why no retry is made in the
    partitions `refused`. `is_ending` is set while a completion runs or waits for the disk: there is one at a time.
    `pause_ms` and `said` are for `Retries`: the pause before the next retry, and the last reason by partition.
    `flush` is the fsync that the last record waits for, until it is known to be done (`TransactionLog.pending_flush`).
    """

    __slots__ = ()

    if TYPE_CHECKING:
        flush: Flush | None
        refused: frozenset[TopicPartition]
        said: dict[TopicPartition | None, str]
        transaction: Transaction | None
        unmarked: dict[TopicPartition, None]

    def __init__(self, transactional_id: str, partition: int) -> None:
        self.key = records.encode_key(transactional_id)
        self.partition = partition
        self.transaction = None
        self.pending = False
        self.stuck = ""
        self.refused = frozenset()
        self.is_ending = False
        self.unmarked = {}
        self.pause_ms = 0
        self.said = NOTHING_SAID
        self.flush = None


class TransactionLog(TransactionLogBase):
    """Owned by the coordinator. `slots` is by transactional id; only this class adds to it or removes from it. No id
    whose partition is in `unloaded` is served: the start could not read it, for the reason that was last said.
    `unresumed` are slots that were read later, until they are looked at for a prepared transaction."""

    if TYPE_CHECKING:
        slots: dict[str, Slot]
        _explanations: Explanations
        _metadata: MetadataStore

    def __init__(self, config: BrokerConfig, logs: Logs, metadata: MetadataStore, explanations: Explanations) -> None:
        loaded = logs.partitions.loaded
        # The sets of partitions that producers added last.
        self.sets = PartitionSets()
        super().__init__(
            loaded,
            metadata,
            explanations,
            records.BATCHES,
            TRANSACTION_STATE_TOPIC,
            FEATURE,
            STATES,
            SHOWN_PARTITIONS,
            self.sets.set_of,
            union,
        )
        self.unresumed: list[Slot] = []
        self._config = config
        self._logs = logs
        explanations.ids = self.slots

    def load(self) -> Flush | None:
        """Replay all partitions. Those that are offline or cannot be read stay in `unloaded`. Returns the fsync that
        must finish before a client gets a producer id of them. Raises StorageError if the process lacks descriptors or
        memory for one."""
        for log in self._logs_with_records():
            try:
                for _ in self._replay(log):
                    pass
            except OSError as error:
                if error.errno in OUT_OF_RESOURCES:
                    raise StorageError(f"{log.name} cannot be read: {error}") from error
                self._not_read(log.partition, error)
        self._metadata.on_topic_deleted.append(self._on_topic_deleted)
        if not self.slots and not self.unloaded:
            return None
        txns = [slot.transaction for slot in self.slots.values() if slot.transaction is not None]
        ids = (max(txn.producer_id, txn.next_producer_id) for txn in txns)
        return self._metadata.reserve_producer_ids(ids, has_others=bool(self.unloaded))

    def load_rest(self, resume: Callable[[list[Slot]], None]) -> Generator[None, None, None]:
        """Replay the partitions in `unloaded` whose logs can be read by now, in steps. `resume` gets `unresumed`, with
        the slots of a partition before any of them is served, and takes out what it has looked at."""
        resume(self.unresumed)
        for partition in sorted(self.unloaded):
            log = self._logs.find(TRANSACTION_STATE_TOPIC, partition)
            if log is None or partition not in self.unloaded:
                continue
            try:
                yield from self._replay(log)
            except (OSError, KafkaError, MemoryError) as error:
                if partition in self.unloaded:
                    self._not_read(partition, error)
                continue
            if partition in self.unloaded:  # else the topic was deleted meanwhile
                self.unresumed += [slot for slot in self.slots.values() if slot.partition == partition]
                del self.unloaded[partition]
                resume(self.unresumed)

    def _not_read(self, partition: int, error: Exception) -> None:
        """Note that a partition cannot be read yet, and drop what was read of it, which may be an older state. Each
        attempt meets the same reason: it is said once."""
        reason = str(error) or "no memory is left"
        if self.unloaded.get(partition) != reason:
            self.unloaded[partition] = reason
            logger.warning("%s-%d cannot be read yet: %s", TRANSACTION_STATE_TOPIC, partition, reason)
        for name in [name for name, slot in self.slots.items() if slot.partition == partition]:
            del self.slots[name]

    def _logs_with_records(self) -> Iterator[PartitionLog]:
        topic = self._metadata.image.topics.get(TRANSACTION_STATE_TOPIC)
        for partition in topic.partitions if topic is not None else ():
            try:
                log = self._logs.get(TRANSACTION_STATE_TOPIC, partition.partition)
            except KafkaError as error:
                if self._logs.is_unread(TRANSACTION_STATE_TOPIC, partition.partition):
                    raise StorageError(str(error.message)) from error
                self.unloaded[partition.partition] = str(error)
                continue
            if log.log_end_offset > log.log_start_offset:
                yield log

    def _replay(self, log: PartitionLog) -> Generator[None, None, None]:
        """A partition may be replayed again from its beginning."""
        for buffer, batch in log.batches():
            yield
            if log.is_closed:
                return  # the topic was deleted
            for record in records_of(log, buffer, batch, logger):
                self._replay_record(log, record)

    def _replay_record(self, log: PartitionLog, record: Record) -> None:
        if record.key is None:
            return
        try:
            transactional_id = records.decode_key(record.key)
            value = record.value
            txn = None if value is None else records.decode_value(transactional_id, value)
        except (ValueError, StructError) as error:
            # A record of another version or with invalid bytes. It must not keep the other transactional ids from being
            # loaded.
            logger.warning(
                "skipping a record of %s-%d at %d: %s", TRANSACTION_STATE_TOPIC, log.partition, record.offset, error
            )
            return
        self.apply(transactional_id, txn, log.partition)

    def _on_topic_deleted(self, topic: Topic) -> None:
        if topic.name == TRANSACTION_STATE_TOPIC:
            self.slots.clear()
            self.unloaded.clear()
            self.unresumed.clear()
            self._explanations.forget_all()

    def apply(self, transactional_id: str, txn: Transaction | None, partition: int) -> None:
        """Make a record of the log the state. None is a tombstone. An id stays in the partition that has it: where
        somebody has added partitions to the topic that is another one than its hash says, and of two that have it the
        one with the later record counts."""
        slot = self.slots.get(transactional_id)
        if slot is not None and slot.partition != partition:
            known = slot.transaction
            if txn is None or (known is not None and known.last_update_ms > txn.last_update_ms):
                return
            slot = None
        if txn is None:
            self.slots.pop(transactional_id, None)
            return
        if slot is None:
            slot = self.slots[transactional_id] = Slot(transactional_id, partition)
        slot.transaction = txn

    def write(self, slot: Slot, txn: Transaction) -> Flush | None:
        """Append one state transition, then apply it. Returns the fsync that must finish before the response. Raises
        NOT_COORDINATOR if the log is deleted or offline. Raises UNSUPPORTED_VERSION for a TV2 client if
        transaction.version is finalised at 0, because those records cannot hold what a restart needs to know of the
        transition."""
        batch = self._batch_of(slot, txn)
        known = self.slots.get(txn.transactional_id)
        if known is None:
            # The first transition of an id adds the slot on which the rule decided.
            self.slots[txn.transactional_id] = slot
        try:
            appended = self._append(slot, batch, txn)
        except BaseException:
            if known is None:
                del self.slots[txn.transactional_id]
            raise
        # `apply`, without a call: a call may find no memory, and the record would count in the log alone.
        kept = known or slot
        kept.transaction = txn
        kept.flush = appended.flushed
        try:  # noqa: SIM105  (it takes a call)
            self._explanations.moved(txn)
        except MemoryError:
            pass  # the history lacks a line; whoever wrote the transition must go on with it
        return appended.flushed

    def _batch_of(self, slot: Slot, txn: Transaction) -> bytearray:
        version = 1 if self._metadata.image.features.get(FEATURE, 0) >= TV1 else 0  # `server_version`
        if version == 0 and txn.client_version >= TV2 and txn.state in _OF_CLIENTS:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, "a TV2 transition needs the feature transaction.version at 1 or above"
            )
        return records.encode_batch(slot.key, txn, version)

    def _append(self, slot: Slot, batch: bytearray, txn: Transaction) -> Appended:
        try:
            log = self._loaded.get((TRANSACTION_STATE_TOPIC, slot.partition))
            if log is None or log.is_offline or self.unloaded:
                log = self.partition_log(slot.partition)
            return log.append_batch(batch, now_ms=txn.last_update_ms)
        except KafkaError as error:
            raise KafkaError(COORDINATOR_ERRORS.get(error.code, error.code), error.message) from error

    def _not_added(
        self,
        api: str,
        transactional_id: str,
        error: Exception,
        now_ms: int,
        producer: tuple[int, int],
        outcomes: list[Admission],
    ) -> list[Admission]:
        """Returns the outcomes of batches whose partitions could not be added. Raises an error that is a bug."""
        if not isinstance(error, KafkaError):
            raise error
        self._explanations.refused(api, transactional_id, error, now_ms, producer)
        return [outcome if outcome is None else error for outcome in outcomes]

    def _refusal_of(self, log: PartitionLog, base_offset: int, error: Exception) -> Exception:
        """Returns what `write` raises for the failure of an append at this offset."""
        if isinstance(error, (OSError, MemoryError)):
            error = log.not_appended(base_offset, error)
        if isinstance(error, KafkaError):
            return KafkaError(COORDINATOR_ERRORS.get(error.code, error.code), error.message)
        return error

    def remove(self, transactional_ids: Iterable[str], now_ms: int) -> None:
        """Write tombstones and remove the ids."""
        by_partition: dict[int, list[str]] = {}
        for transactional_id in transactional_ids:
            by_partition.setdefault(self.slots[transactional_id].partition, []).append(transactional_id)
        for partition, ids in by_partition.items():
            max_bytes = self._metadata.topic_config(TRANSACTION_STATE_TOPIC).max_message_bytes
            pairs = [(self.slots[name].key, None) for name in ids]
            for part in divided(pairs, TOMBSTONES_PER_BATCH, max_bytes):
                self._remove(partition, ids[part], now_ms)

    def _remove(self, partition: int, ids: list[str], now_ms: int) -> None:
        batch = cext_records.build([(self.slots[name].key, None, now_ms, ()) for name in ids])
        gone = iter(ids)
        try:
            self.partition_log(partition).append_batch(batch, now_ms=now_ms)
        except KafkaError as error:
            logger.warning("cannot expire transactional ids of %s-%d: %s", TRANSACTION_STATE_TOPIC, partition, error)
            return
        for transactional_id in gone:
            del self.slots[transactional_id]  # `apply`, and as in `write` without a call
        for transactional_id in ids:
            self._explanations.forget(transactional_id)

    # --- where things are

    def wants_flush(self, transactional_id: str) -> bool:
        """Returns whether `flush.messages` is set for the partition that holds the transactional id."""
        slot = self.slots.get(transactional_id)
        log = None if slot is None else self._logs.find(TRANSACTION_STATE_TOPIC, slot.partition)
        return log is not None and log.config.flush_messages < NEVER

    def prepare_flush(self, slot: Slot) -> Flush | None:
        """Request the fsync of everything in the slot's partition if `flush.messages` is set and it may not be on the
        disk. Returns None if nothing must be waited for. Raises NOT_COORDINATOR."""
        log = self.partition_log(slot.partition)
        if log.sync_error is not None:
            # Nobody may have used it since an fsync failed, and until it is reopened no fsync succeeds.
            log.check_sync()
            log = self.partition_log(slot.partition)
        return flush_of(log)

    def pending_flush(self, slot: Slot) -> Flush | None:
        """Returns the fsync that a request waits for which finds its record written by an earlier one, or None. An
        earlier fsync that failed is requested again. Raises NOT_COORDINATOR, also while the partition is offline."""
        flush = slot.flush
        if flush is None or not flush.done():
            return flush
        # Until the new one succeeds the next request asks again.
        flush = None if flush.exception() is None else self.prepare_flush(slot)
        slot.flush = flush
        return flush

    def partition_log(self, partition: int) -> PartitionLog:
        """Returns the log of a partition. Raises NOT_COORDINATOR if it does not exist, is offline or in `unloaded`."""
        log = self._logs.find(TRANSACTION_STATE_TOPIC, partition)
        if partition in self.unloaded:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR,
                f"{TRANSACTION_STATE_TOPIC}-{partition} could not be read when the broker started",
            )
        if log is None:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"{TRANSACTION_STATE_TOPIC}-{partition} does not exist or is offline"
            )
        return log

    def partition_for(self, transactional_id: str) -> int:
        """Returns the partition that holds the transactional id (B1)."""
        topic = self._metadata.image.topics.get(TRANSACTION_STATE_TOPIC)
        count = len(topic.partitions) if topic is not None else self._config.transaction_state_log_num_partitions
        return internal_partition(transactional_id, count)

    def find(self, transactional_id: str) -> Slot | None:
        """Returns the slot, or None for an id that was never initialised. Raises INVALID_REQUEST for an empty id,
        NOT_COORDINATOR."""
        slot = self.slots.get(transactional_id)
        if slot is not None and not self.unloaded:
            return slot
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        self.partition_log(self.partition_for(transactional_id) if slot is None else slot.partition)
        return slot

    def server_version(self) -> int:
        """The finalised level of `transaction.version`. It applies to log records and to transactions that the broker
        ends itself."""
        return self._metadata.feature(FEATURE)


def flush_of(log: PartitionLog) -> Flush | None:
    """Request the fsync of everything in the log if `flush.messages` is set and it may not be on the disk."""
    if log.config.flush_messages >= NEVER or log.recovery_point >= log.log_end_offset:
        return None
    return log.request_flush()

"""The transaction coordinator: the shell around the rules of `state`. Decide, append to `__transaction_state`, apply.

Nothing is awaited between a decision and its apply: that is the lock. Only a transaction that is being ended in
stepwise mode waits between its steps, and then it is `pending`, which every rule refuses with CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

import logging

from cext import records as cext_records
from shim.errors import ErrorCode, KafkaError
from shim.java_hash import internal_partition
from shim.txn import records, state
from shim.txn.explain import Explanations
from shim.txn.state import State, Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from shim.clock import Clock, Timer
    from shim.config import BrokerConfig
    from shim.faults import Faults
    from shim.metadata.image import Topic
    from shim.metadata.store import MetadataStore
    from shim.storage.log import PartitionLog
    from shim.storage.logs import Logs
    from shim.txn.producer_ids import ProducerIds
    from shim.txn.state import TopicPartition

logger = logging.getLogger("shim.txn")

TOPIC = "__transaction_state"
FEATURE = "transaction.version"
MARKER_RETRY_MS = 100
# Tombstones of expired ids that go into one batch.
TOMBSTONES_PER_BATCH = 500
# What a failed append of a transition is called to the client, which then looks for the coordinator again.
_APPEND_ERRORS = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Slot:
    """One transactional id: its value, and what is only in memory.

    `pending` is set while markers are written, and stays when they cannot be; `unmarked` is what is left to mark then.
    """

    __slots__ = ("key", "partition", "pending", "stuck", "transaction", "unmarked")

    def __init__(self, transactional_id: str, partition: int) -> None:
        self.key = records.encode_key(transactional_id)
        self.partition = partition
        self.transaction: Transaction | None = None
        self.pending = False
        self.stuck = ""
        self.unmarked: list[TopicPartition] = []


class TransactionCoordinator:
    """Owned by the broker; event-loop thread only. `start()` replays and resumes, after the group coordinator is there
    (the markers of a resumed transaction decide offsets in it); `stop()` ends the timers.

    Methods named after an API raise KafkaError with that API's newest code; handlers turn it into what an older version
    of the request expects (`PRODUCER_FENCED` to `INVALID_PRODUCER_EPOCH`, B2).
    """

    def __init__(
        self,
        *,
        clock: Clock,
        config: BrokerConfig,
        logs: Logs,
        metadata: MetadataStore,
        faults: Faults,
        producer_ids: ProducerIds,
    ) -> None:
        # For the life of the broker.
        self.explanations = Explanations()
        self.producer_ids = producer_ids
        self._clock = clock
        self._config = config
        self._logs = logs
        self._metadata = metadata
        self._faults = faults
        self._timers: dict[str, Timer] = {}
        # By transactional id; the latest record of each.
        self._slots: dict[str, Slot] = {}

    # --- life

    def start(self) -> None:
        """Replay `__transaction_state`, end what was prepared (B12), start the timers."""
        for log in self._transaction_logs():
            self._replay(log)
        self._metadata.on_topic_deleted.append(self._on_topic_deleted)
        for slot in list(self._slots.values()):
            if slot.transaction is not None and slot.transaction.is_prepared:
                self._resume(slot, slot.transaction)
        self._every(
            "abort", self._config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self.abort_timed_out
        )
        self._every(
            "expire", self._config.transaction_remove_expired_transaction_cleanup_interval_ms, self.remove_expired
        )

    def stop(self) -> None:
        """Stop the timers. Nothing is lost: all state is records."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _every(self, name: str, interval_ms: int, action: object) -> None:
        def run() -> None:
            self._timers[name] = self._clock.call_later(interval_ms, run)
            action()  # type: ignore[operator]

        self._timers[name] = self._clock.call_later(interval_ms, run)

    def _transaction_logs(self) -> Iterable[PartitionLog]:
        topic = self._metadata.image.topics.get(TOPIC)
        for partition in topic.partitions if topic is not None else ():
            log = self._logs.find(TOPIC, partition.partition)
            if log is not None and log.log_end_offset > log.log_start_offset:
                yield log

    def _replay(self, log: PartitionLog) -> None:
        for buffer, _ in log.batches():
            for record in cext_records.iterate(buffer):
                if record.key is None:
                    continue
                try:
                    transactional_id = records.decode_key(record.key)
                    value = record.value
                    txn = None if value is None else records.decode_value(transactional_id, value)
                except records.UnknownVersion as unknown:
                    logger.warning("skipping a record of %s-%d at %d: %s", TOPIC, log.partition, record.offset, unknown)
                    continue
                self._apply(transactional_id, txn)

    def _on_topic_deleted(self, topic: Topic) -> None:
        if topic.name == TOPIC:
            self._slots.clear()

    # --- records

    def _apply(self, transactional_id: str, txn: Transaction | None) -> None:
        """Make a written record the state. Start-up calls it with what it reads, the live path with what it wrote."""
        if txn is None:
            self._slots.pop(transactional_id, None)
            return
        slot = self._slots.get(transactional_id)
        if slot is None:
            slot = self._slots[transactional_id] = Slot(transactional_id, self.partition_for(transactional_id))
        slot.transaction = txn

    def _write(self, slot: Slot, txn: Transaction) -> None:
        """Append one transition, then apply it. Raises NOT_COORDINATOR when the log is gone or offline."""
        value = records.encode_value(txn, 1 if self.server_version() >= state.TV1 else 0)
        batch = cext_records.build([(slot.key, value, txn.last_update_ms, ())])
        try:
            self._log(slot.partition).append_batch(batch, now_ms=txn.last_update_ms)
        except KafkaError as error:
            raise KafkaError(_APPEND_ERRORS.get(error.code, error.code), error.message) from error
        self._apply(txn.transactional_id, txn)
        self.explanations.moved(txn)

    def _log(self, partition: int) -> PartitionLog:
        log = self._logs.find(TOPIC, partition)
        if log is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{TOPIC}-{partition} is not here")
        return log

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` (B1)."""
        topic = self._metadata.image.topics.get(TOPIC)
        count = len(topic.partitions) if topic is not None else self._config.transaction_state_log_num_partitions
        return internal_partition(transactional_id, count)

    def server_version(self) -> int:
        """The finalised level of `transaction.version`: of log records, and of what the broker ends by itself."""
        return self._metadata.feature(FEATURE)

    def _find(self, transactional_id: str) -> Slot:
        """Raises INVALID_REQUEST for no id, INVALID_PRODUCER_ID_MAPPING for one that never was initialised."""
        slot = self._slots.get(transactional_id)
        if slot is not None and slot.transaction is not None:
            return slot
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        self._log(self.partition_for(transactional_id))
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "unknown transactional id")

    # --- InitProducerId

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, expected: tuple[int, int] | None
    ) -> tuple[int, int]:
        """The (producer id, epoch) to use from now on; an open transaction of an earlier producer is aborted, which
        answers CONCURRENT_TRANSACTIONS (A1, B2-B5)."""
        if transactional_id is None:
            return self.producer_ids.next(), 0
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"timeout {timeout_ms} ms, transaction.max.timeout.ms is {self._config.transaction_max_timeout_ms}",
            )
        now_ms = self._clock.now_ms()
        slot = self._slots.get(transactional_id)
        if slot is None:
            slot = Slot(transactional_id, self.partition_for(transactional_id))
            self._log(slot.partition)
        try:
            txn = state.initialise(
                slot.transaction,
                transactional_id,
                timeout_ms,
                expected,
                now_ms,
                self.server_version(),
                self.producer_ids.next,
                slot.pending,
            )
        except KafkaError as error:
            self.explanations.refused("InitProducerId", transactional_id, error, now_ms, expected)
            raise
        if txn.is_prepared:
            self._finish(slot, txn)
            fenced = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "an open transaction was fenced and aborted")
            self.explanations.refused("InitProducerId", transactional_id, fenced, now_ms, expected)
            raise fenced
        self._write(slot, txn)
        return txn.producer_id, txn.producer_epoch

    # --- partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        client_version: int,
        api: str = "AddPartitionsToTxn",
    ) -> None:
        """Begin or extend the transaction (B8); returns when it is recorded."""
        now_ms = self._clock.now_ms()
        try:
            slot = self._find(transactional_id)
            current = slot.transaction
            assert current is not None
            txn = state.add_partitions(
                current, producer_id, producer_epoch, partitions, client_version, now_ms, slot.pending
            )
            if txn is not current:
                begins = self._faults.armed and current.state is not state.ONGOING
                if begins:
                    self._faults.reach("txn.before_begin", transactional_id=transactional_id)
                self._write(slot, txn)
                if begins:
                    self._faults.reach("txn.after_begin", transactional_id=transactional_id)
        except KafkaError as error:
            self.explanations.refused(api, transactional_id, error, now_ms, (producer_id, producer_epoch))
            raise

    def missing_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        api: str = "AddPartitionsToTxn",
    ) -> frozenset[TopicPartition]:
        """Verification: those that are not in the transaction, which get TRANSACTION_ABORTABLE (B8, B9)."""
        try:
            txn = self._find(transactional_id).transaction
            assert txn is not None
            missing = state.missing_partitions(txn, producer_id, producer_epoch, partitions)
        except KafkaError as error:
            now_ms = self._clock.now_ms()
            self.explanations.refused(api, transactional_id, error, now_ms, (producer_id, producer_epoch))
            raise
        if missing:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(missing))
            refusal = KafkaError(
                ErrorCode.TRANSACTION_ABORTABLE,
                f"{names} not in the transaction, state {state.STATE_NAMES[txn.state]}",
            )
            now_ms = self._clock.now_ms()
            self.explanations.refused(api, transactional_id, refusal, now_ms, (producer_id, producer_epoch))
        return missing

    # --- EndTxn

    def end(
        self, transactional_id: str, producer_id: int, producer_epoch: int, commit: bool, client_version: int
    ) -> tuple[int, int]:
        """EndTxn: everything is written when this returns (B10). Answers (producer id, epoch) for TV2, else -1s."""
        steps = self._end(transactional_id, producer_id, producer_epoch, commit, client_version)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]

    async def end_stepwise(
        self, transactional_id: str, producer_id: int, producer_epoch: int, commit: bool, client_version: int
    ) -> tuple[int, int]:
        """The same, with a stop at each step for `faults` to hold, to drop or to crash."""
        steps = self._end(transactional_id, producer_id, producer_epoch, commit, client_version)
        while True:
            try:
                point = next(steps)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            try:
                await self._faults.gate(point, transactional_id=transactional_id)
            except BaseException as error:
                steps.throw(error)
                raise

    def _end(
        self, transactional_id: str, producer_id: int, producer_epoch: int, commit: bool, client_version: int
    ) -> Generator[str, None, tuple[int, int]]:
        now_ms = self._clock.now_ms()
        try:
            slot = self._find(transactional_id)
            current = slot.transaction
            assert current is not None
            txn = state.end(
                current,
                producer_id,
                producer_epoch,
                commit,
                client_version,
                now_ms,
                self.producer_ids.next,
                slot.pending,
            )
        except KafkaError as error:
            self.explanations.refused("EndTxn", transactional_id, error, now_ms, (producer_id, producer_epoch))
            raise
        if txn is not current:
            txn = yield from self._steps(slot, txn)
            yield "txn.after_complete"
        if client_version < state.TV2:
            return -1, -1
        return txn.producer_id, txn.producer_epoch

    def _finish(self, slot: Slot, prepared: Transaction) -> None:
        """All steps at once; faults that need no waiting act here too."""
        self._run(self._steps(slot, prepared), prepared.transactional_id)

    def _run(self, steps: Generator[str, None, object], transactional_id: str) -> None:
        for point in steps:
            if self._faults.armed:
                try:
                    self._faults.reach(point, transactional_id=transactional_id)
                except BaseException as error:
                    steps.throw(error)
                    raise

    def _steps(self, slot: Slot, prepared: Transaction) -> Generator[str, None, Transaction]:
        """Write PREPARE, the markers, COMPLETE; yields the name of each point where a test may stop the machine.

        The decision stands with PREPARE: what fails after it is tried again (storage) or stays as it is (a fenced
        marker, D18), and the client is answered what completion will give it.
        """
        slot.pending = True
        try:
            yield "txn.before_prepare"
            self._write(slot, prepared)
        except BaseException:
            slot.pending = False
            raise
        slot.unmarked = sorted(prepared.partitions)
        try:
            yield "txn.after_prepare"
            yield from self._mark(slot, prepared)
        except BaseException:
            self._retry_later(slot, prepared)
            raise
        return self._complete(slot, prepared)

    def _mark(self, slot: Slot, prepared: Transaction) -> Generator[str, None, None]:
        """Write the markers that are still missing; what cannot be written stays in `slot.unmarked`."""
        coordinator_epoch = self._log(slot.partition).leader_epoch
        waiting, failed = slot.unmarked, []
        written = 0
        try:
            for topic, partition in waiting:
                log = self._logs.find(topic, partition)
                written += 1
                if log is None:
                    # Deleted: nobody waits for its marker (B17). Offline: it may come back.
                    if self._metadata.image.partition(topic, partition) is not None:
                        failed.append((topic, partition))
                    continue
                try:
                    log.append_marker(
                        prepared.producer_id,
                        prepared.producer_epoch,
                        coordinator_epoch,
                        prepared.state is state.PREPARE_COMMIT,
                        prepared.client_version,
                        prepared.last_update_ms,
                    )
                except KafkaError as error:
                    failed.append((topic, partition))
                    self._on_marker_refused(slot, prepared, (topic, partition), error)
                yield "txn.after_marker"
        finally:
            slot.unmarked = failed + waiting[written:]
        yield "txn.before_complete"

    def _on_marker_refused(
        self, slot: Slot, prepared: Transaction, partition: TopicPartition, error: KafkaError
    ) -> None:
        text = f"marker for {partition[0]}-{partition[1]} refused with {error.code.name}: {error.message}"
        if error.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED):
            # As Kafka's coordinator: somebody else wrote a marker there, the transaction stays prepared (B11, D18).
            slot.stuck = text
            text += "; it stays prepared until `kafka-shim transactions resolve` decides what is left"
            logger.warning("%s: %s", prepared.transactional_id, text)
        self.explanations.noted(prepared.transactional_id, prepared.last_update_ms, text)

    def _complete(self, slot: Slot, prepared: Transaction) -> Transaction:
        """Write COMPLETE if every marker is written; answers the value that the client is told in any case."""
        now_ms = self._clock.now_ms()
        completed = state.complete(prepared, now_ms)
        if not slot.unmarked:
            try:
                self._write(slot, completed)
            except KafkaError as error:
                self.explanations.noted(prepared.transactional_id, now_ms, f"cannot write the end, trying on: {error}")
                self._retry_later(slot, prepared)
                return completed
            slot.pending = False
            slot.stuck = ""
        elif not slot.stuck:
            self._retry_later(slot, prepared)
        return completed

    def _retry_later(self, slot: Slot, prepared: Transaction) -> None:
        name = f"retry {prepared.transactional_id}"

        def retry() -> None:
            self._timers.pop(name, None)
            if slot.transaction is not prepared:
                return
            try:
                self._run(self._mark(slot, prepared), prepared.transactional_id)
            except KafkaError:
                self._retry_later(slot, prepared)
                return
            self._complete(slot, prepared)

        self._timers[name] = self._clock.call_later(MARKER_RETRY_MS, retry)

    def _resume(self, slot: Slot, prepared: Transaction) -> None:
        """End a transaction that was prepared when the broker went down (B12)."""
        now_ms = self._clock.now_ms()
        direction = "commit" if prepared.commits else "abort"
        self.explanations.noted(prepared.transactional_id, now_ms, f"resumed the {direction} that was prepared")
        slot.pending = True
        slot.unmarked = sorted(prepared.partitions)
        self._run(self._mark(slot, prepared), prepared.transactional_id)
        self._complete(slot, prepared)

    # --- time

    def abort_timed_out(self) -> None:
        """Abort every transaction that is older than its timeout (B13)."""
        now_ms = self._clock.now_ms()
        for slot in list(self._slots.values()):
            txn = slot.transaction
            if txn is None or slot.pending or not state.is_timed_out(txn, now_ms):
                continue
            self.explanations.noted(
                txn.transactional_id, now_ms, f"timed out after {txn.timeout_ms} ms, open since {txn.start_ms}"
            )
            try:
                self._finish(slot, state.fence(txn, self.server_version(), now_ms, self.producer_ids.next))
            except KafkaError as error:
                self.explanations.refused("abort of a timed-out transaction", txn.transactional_id, error, now_ms)

    def remove_expired(self) -> None:
        """Write tombstones for transactional ids that nobody used for `transactional.id.expiration.ms` (B7)."""
        now_ms = self._clock.now_ms()
        by_partition: dict[int, list[str]] = {}
        for transactional_id, slot in self._slots.items():
            txn = slot.transaction
            if txn is None or slot.pending:
                continue
            if state.is_expired(txn, now_ms, self._config.transactional_id_expiration_ms):
                by_partition.setdefault(slot.partition, []).append(transactional_id)
        for partition, ids in by_partition.items():
            for at in range(0, len(ids), TOMBSTONES_PER_BATCH):
                self._write_tombstones(partition, ids[at : at + TOMBSTONES_PER_BATCH], now_ms)

    def _write_tombstones(self, partition: int, ids: list[str], now_ms: int) -> None:
        batch = cext_records.build([(self._slots[name].key, None, now_ms, ()) for name in ids])
        try:
            self._log(partition).append_batch(batch, now_ms=now_ms)
        except KafkaError as error:
            logger.warning("cannot expire transactional ids of %s-%d: %s", TOPIC, partition, error)
            return
        for transactional_id in ids:
            self._apply(transactional_id, None)
            self.explanations.forget(transactional_id)

    # --- administration

    def describe(self, transactional_id: str) -> Transaction:
        """Raises TRANSACTIONAL_ID_NOT_FOUND, INVALID_REQUEST, NOT_COORDINATOR (B19)."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        slot = self._slots.get(transactional_id)
        if slot is None or slot.transaction is None:
            self._log(self.partition_for(transactional_id))
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "unknown transactional id")
        return slot.transaction

    def transactions(self) -> list[Transaction]:
        """All of them, for ListTransactions."""
        return [slot.transaction for slot in self._slots.values() if slot.transaction is not None]

    def resolve(self, transactional_id: str) -> list[str]:
        """The way out of D18: where somebody else's marker has ended the transaction already, ours is not needed;
        where it is still open, ours is written at the partition's own coordinator epoch. Answers a line per step."""
        slot = self._find(transactional_id)
        prepared = slot.transaction
        assert prepared is not None
        if not slot.stuck or not prepared.is_prepared:
            return [f"nothing to resolve: state {state.STATE_NAMES[prepared.state]}"]
        done = []
        for topic, partition in slot.unmarked:
            log = self._logs.find(topic, partition)
            status = None
            if log is not None:
                statuses = log.producer_statuses()
                status = next((found for found in statuses if found.producer_id == prepared.producer_id), None)
            if log is None or status is None or status.current_txn_start_offset < 0:
                done.append(f"{topic}-{partition}: ended by another marker, left as it is")
                continue
            log.append_marker(
                prepared.producer_id,
                max(prepared.producer_epoch, status.producer_epoch),
                max(status.coordinator_epoch, self._log(slot.partition).leader_epoch),
                prepared.commits,
                prepared.client_version,
                self._clock.now_ms(),
            )
            done.append(f"{topic}-{partition}: marked at coordinator epoch {status.coordinator_epoch}")
        slot.unmarked = []
        completed = self._complete(slot, prepared)
        done.append(f"now {state.STATE_NAMES[State(completed.state)]}")
        return done

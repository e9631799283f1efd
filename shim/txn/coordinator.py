"""The transaction coordinator. It handles requests with the rules of `state`: decide, append to `__transaction_state`,
apply.

Nothing is awaited between a decision and its apply; this takes the place of a lock. Only the end of a transaction may
wait between its steps (for a test, or with `flush.messages`). Until it is complete the transaction has a pending state,
and every rule refuses requests with CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

import logging
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.scheduler import Scheduler, Slice
from kafka_shim.txn import expiry, records, state
from kafka_shim.txn.end_txn import EndTxn
from kafka_shim.txn.explain import Explanations
from kafka_shim.txn.log import Slot, TransactionLog
from kafka_shim.txn.quick_completion import QuickCompletion
from kafka_shim.txn.transaction import ONGOING, STATE_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flush, Flushes
    from kafka_shim.storage.logs import Logs
    from kafka_shim.txn.producer_ids import ProducerIds
    from kafka_shim.txn.transaction import TopicPartition, Transaction


logger = logging.getLogger("kafka_shim.txn")

SHOWN_PARTITIONS = 5
ABORTS, EXPIRY = "slices of aborts", "slices of expiry"
LATE_LOADS, LATE_LOAD = "late loads", "slices of a late load"
LATE_LOAD_INTERVAL_MS = 1000
# Transactions that one slice looks at for their timeout, at most.
MOST_LOOKED_AT_AT_ONCE = 100


class TransactionCoordinator(EndTxn):
    """Owned by the broker. Event-loop thread only. `start()` replays the log and resumes prepared transactions. It runs
    after the group coordinator's start, because the markers of a resumed transaction commit or abort offsets there.
    `stop()` ends the timers.

    Methods named after an API raise KafkaError with the code of that API's newest version. Handlers convert it to the
    code for an older version (`PRODUCER_FENCED` to `INVALID_PRODUCER_EPOCH`, B2).
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
        self.explanations = Explanations()
        self.producer_ids = producer_ids
        self.clock = clock
        self._config = config
        self._faults = faults
        self._log = TransactionLog(config, logs, metadata, self.explanations)
        self.completion = QuickCompletion(self._log, clock, logs, metadata, faults, self.explanations)
        # Set from start() to stop().
        self.scheduler = Scheduler(clock)

    # --- life

    def start(self) -> None:
        """Replay `__transaction_state`, complete prepared transactions (B12), and start the timers."""
        self.producer_ids.loaded(self._log.load())
        self.completion.resume_all(list(self._log.slots.values()))
        if self._log.unloaded:
            self.scheduler.every(LATE_LOADS, LATE_LOAD_INTERVAL_MS, self._load_rest)
        config = self._config
        every = self.scheduler.every
        every("abort", config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self.abort_timed_out)
        every("expire", config.transaction_remove_expired_transaction_cleanup_interval_ms, self.remove_expired)

    def _load_rest(self) -> None:
        """Serve what the start could not read, once it can be read."""
        if not self.scheduler.is_scheduled(LATE_LOAD):
            self.scheduler.in_slices(LATE_LOAD, self._late_load())

    def _late_load(self) -> Generator[None, None, None]:
        yield from self._log.load_rest(self.completion.resume_all)
        if not self._log.unloaded:
            self.scheduler.cancel(LATE_LOADS)

    def stop(self) -> None:
        """Stop the timers. No state is lost, because all of it is in records."""
        self.scheduler.stop()
        self.completion.stop()

    def partition_for(self, transactional_id: str) -> int:
        """Returns the partition of `__transaction_state` that holds the transactional id (B1)."""
        return self._log.partition_for(transactional_id)

    def _find(self, transactional_id: str) -> tuple[Slot, Transaction]:
        """Raises INVALID_REQUEST for an empty id, INVALID_PRODUCER_ID_MAPPING for one that was never initialised."""
        slot = self._log.find(transactional_id)
        if slot is None or slot.transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "unknown transactional id")
        return slot, slot.transaction

    # --- InitProducerId

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, expected: tuple[int, int] | None
    ) -> Outcome[tuple[int, int]]:
        """Returns the new (producer id, epoch). Raises CONCURRENT_TRANSACTIONS after it aborted an open transaction of
        the previous producer (A1, B2-B5)."""
        now_ms = self.clock.now_ms()
        try:
            outcome = self._initialise(transactional_id, timeout_ms, expected, now_ms)
        except KafkaError as error:
            self.explanations.refused("InitProducerId", transactional_id, error, now_ms, expected)
            raise
        if outcome is None:
            raise _fencing()
        return outcome

    def _initialise(
        self, transactional_id: str | None, timeout_ms: int, expected: tuple[int, int] | None, now_ms: int
    ) -> Outcome[tuple[int, int]] | None:
        """Returns None if an open transaction is fenced and aborted first."""
        if transactional_id is None:
            flushes: list[Flush] = []
            return Outcome((self.producer_ids.next(flushes), 0), flushes)
        slot, txn, flushes = self._decide_initialise(transactional_id, timeout_ms, expected, now_ms)
        if not txn.is_prepared:
            flush = self._log.write(slot, txn)
            if flush is not None:
                flushes.append(flush)
            return Outcome((txn.producer_id, txn.producer_epoch), flushes)
        # The history has the request before the transitions that it causes.
        self.explanations.refused("InitProducerId", transactional_id, _fencing(), now_ms, expected)
        self.completion.finish(slot, txn)
        return None

    def _decide_initialise(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None, now_ms: int
    ) -> tuple[Slot, Transaction, list[Flush]]:
        """Returns what is to be written, nothing of which is yet, with the fsyncs of the block of its producer id."""
        if transactional_id:  # `find` refuses an empty id before its timeout is checked, as in Kafka
            self._check_timeout(timeout_ms)
        slot = self._log.find(transactional_id)
        flushes: list[Flush] = []
        txn = state.initialise(
            None if slot is None else slot.transaction,
            transactional_id,
            timeout_ms,
            expected,
            now_ms,
            self._log.server_version(),
            partial(self.producer_ids.next, flushes),
            slot is not None and slot.pending,
        )
        if slot is None:
            slot = Slot(transactional_id, self._log.partition_for(transactional_id))
        elif not flushes and not txn.is_prepared:  # else an abort comes first, and no id is told
            self.producer_ids.pending(txn.producer_id, flushes)
        return slot, txn, flushes

    def _check_timeout(self, timeout_ms: int) -> None:
        longest_ms = self._config.transaction_max_timeout_ms
        if not 0 < timeout_ms <= longest_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"timeout {timeout_ms} ms, transaction.max.timeout.ms is {longest_ms}",
            )

    # --- partitions

    def set_of(self, transactional_id: str, added: list[TopicPartition]) -> frozenset[TopicPartition]:
        """Returns the set of partitions that a request adds."""
        slot = self._log.slots.get(transactional_id)
        if slot is None:
            return frozenset(added)
        is_first = slot.transaction is None or slot.transaction.state is not ONGOING
        return self._log.sets.set_of(transactional_id, added, is_first=is_first)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        client_version: int,
        api: str = "AddPartitionsToTxn",
    ) -> Flushes:
        """Begin or extend the transaction (B8). Returns the fsyncs that must finish before the response."""
        producer, now_ms = (producer_id, producer_epoch), self.clock.now_ms()
        try:
            flush = self._add_partitions(transactional_id, producer, partitions, client_version, now_ms)
        except KafkaError as error:
            self.explanations.refused(api, transactional_id, error, now_ms, producer)
            raise
        return () if flush is None else (flush,)

    def _add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: frozenset[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> Flush | None:
        slot, current = self._find(transactional_id)
        txn = state.add_partitions(current, *producer, partitions, client_version, now_ms, slot.pending)
        if txn is current:
            # The request that wrote the record may still wait for the disk, or have failed there.
            return self._log.pending_flush(slot)
        begins = self._faults.armed and current.state is not ONGOING
        if begins:
            self._faults.reach("txn.before_begin", transactional_id=transactional_id)
        flush = self._log.write(slot, txn)
        if begins:
            self._faults.reach("txn.after_begin", transactional_id=transactional_id)
        return flush

    def prepare_partitions(self, transactional_id: str, partitions: frozenset[TopicPartition]) -> None:
        """Make the form in which the transaction will have these partitions too, before `add_partitions` decides."""
        slot = self._log.slots.get(transactional_id)
        if slot is not None and slot.transaction is not None and slot.transaction.state is ONGOING:
            partitions |= slot.transaction.partitions
        records.encode_large(partitions)

    def missing_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        api: str = "AddPartitionsToTxn",
    ) -> frozenset[TopicPartition]:
        """Verification: returns the partitions that are not in the transaction. They get TRANSACTION_ABORTABLE (B8,
        B9)."""
        try:
            _, txn = self._find(transactional_id)
            missing = state.missing_partitions(txn, producer_id, producer_epoch, partitions)
        except KafkaError as error:
            self.note_refusal(api, transactional_id, error, (producer_id, producer_epoch))
            raise
        if missing:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(missing)[:SHOWN_PARTITIONS])
            more = "" if len(missing) <= SHOWN_PARTITIONS else f" and {len(missing) - SHOWN_PARTITIONS} more"
            refusal = KafkaError(
                ErrorCode.TRANSACTION_ABORTABLE,
                f"{names}{more} not in the transaction, state {STATE_NAMES[txn.state]}",
            )
            self.note_refusal(api, transactional_id, refusal, (producer_id, producer_epoch))
        return missing

    # --- time

    def abort_timed_out(self) -> None:
        """Abort every transaction that is older than its timeout (B13), in slices. Prepared ones go on."""
        if not self.scheduler.is_scheduled(ABORTS):
            self.scheduler.in_slices(ABORTS, self._slices_of_aborts())

    def _slices_of_aborts(self) -> Generator[None, None, None]:
        now_ms = self.clock.now_ms()
        part = Slice(self.clock, MOST_LOOKED_AT_AT_ONCE)
        for slot in list(self._log.slots.values()):
            if part.is_over():
                yield
                part.begin()
                now_ms = self.clock.now_ms()
            self._abort_if_timed_out(slot, now_ms)

    def _abort_if_timed_out(self, slot: Slot, now_ms: int) -> None:
        txn = slot.transaction
        if txn is None or self._log.slots.get(txn.transactional_id) is not slot:
            return  # it was removed between two slices
        if txn.is_prepared:
            self.completion.retry_forgotten(slot, txn)
        if not slot.pending and state.is_timed_out(txn, now_ms):
            open_ms = now_ms - txn.start_ms
            why = f"timed out: it was open for {open_ms} ms, its timeout is {txn.timeout_ms} ms"
            self.explanations.noted(txn.transactional_id, now_ms, why)
            self._abort_timed_out(slot, txn, now_ms)

    def _abort_timed_out(self, slot: Slot, txn: Transaction, now_ms: int) -> None:
        try:
            next_id = partial(self.producer_ids.next, [])  # no response waits for this flush
            prepared = state.fence(txn, self._log.server_version(), now_ms, next_id)
            self.completion.finish(slot, prepared)
        except KafkaError as error:
            self.explanations.refused("abort of a timed-out transaction", txn.transactional_id, error, now_ms)
        except Exception:
            # A bug in one transaction must not keep the others open.
            logger.exception("%s: its abort failed", txn.transactional_id)

    def remove_expired(self) -> None:
        """Write tombstones for transactional ids that were not used for `transactional.id.expiration.ms` (B7), in
        slices."""
        if not self.scheduler.is_scheduled(EXPIRY):
            expiration_ms = self._config.transactional_id_expiration_ms
            self.scheduler.in_slices(EXPIRY, expiry.remove_expired(self._log, self.clock, expiration_ms))

    # --- administration

    def note_refusal(
        self, api: str, transactional_id: str | None, error: KafkaError, producer: tuple[int, int]
    ) -> None:
        """Record in the history of the transactional id that a log, a group or a handler refused a request."""
        self.explanations.refused(api, transactional_id, error, self.clock.now_ms(), producer)

    def describe(self, transactional_id: str) -> Transaction:
        """Returns the transaction. While it is being completed, its partitions are those without a marker, as in Kafka.
        Raises TRANSACTIONAL_ID_NOT_FOUND, INVALID_REQUEST, NOT_COORDINATOR (B19)."""
        slot = self._log.find(transactional_id)
        if slot is None or slot.transaction is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "unknown transactional id")
        txn = slot.transaction
        if slot.pending and txn.is_prepared:
            return txn.with_partitions(frozenset(slot.unmarked))
        return txn

    def transactions(self) -> list[Transaction]:
        """Returns all transactions, for ListTransactions."""
        return [slot.transaction for slot in self._log.slots.values() if slot.transaction is not None]

    def resolve(self, transactional_id: str) -> Outcome[list[str]]:
        """Force the completion of a transaction that another coordinator's marker left prepared (D18). Returns a line
        per step. While a completion is under way nothing is forced: ask again."""
        slot, txn = self._find(transactional_id)
        if not slot.stuck or not txn.is_prepared:
            return Outcome([f"nothing to resolve: state {STATE_NAMES[txn.state]}"])
        if slot.is_ending:
            return Outcome(["its completion is under way"])
        flushes: list[Flush] = []
        done = self.completion.resolve(slot, txn, flushes)
        return Outcome(done, tuple(flushes))


def _fencing() -> KafkaError:
    return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "an open transaction is fenced and aborted first")

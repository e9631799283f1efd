"""The markers of a transaction that is prepared: one in each of its partitions (TransactionMarkerChannelManager)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.storage.commit_markers import commit_each
from kafka_shim.txn.ending import AFTER_MARKER, BEFORE_COMPLETE, LATER
from kafka_shim.txn.retries import Retries
from kafka_shim.txn.transaction import PREPARE_COMMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from kafka_shim.clock import Clock
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flush
    from kafka_shim.storage.logs import Logs
    from kafka_shim.txn.ending import Step
    from kafka_shim.txn.explain import Explanations
    from kafka_shim.txn.log import Slot, TransactionLog
    from kafka_shim.txn.transaction import TopicPartition, Transaction

    Left = list[TopicPartition] | None

NOTHING_REFUSED: frozenset[tuple[str, int]] = frozenset()
# The most partitions whose markers are written in the turn of the decision: one or two milliseconds. Those of more are
# written on later turns, as Kafka's coordinator sends them after the decision.
MOST_MARKERS_AT_ONCE = 64


class Marking:
    """The base of `Completion`. Its functions are short, which lets them be left without memory
    (`QuickCompletion.quick_steps`)."""

    def __init__(
        self,
        log: TransactionLog,
        clock: Clock,
        logs: Logs,
        metadata: MetadataStore,
        faults: Faults,
        explanations: Explanations,
    ) -> None:
        self._log = log
        self._clock = clock
        self._logs = logs
        self._metadata = metadata
        self._faults = faults
        self._explanations = explanations
        self.retries = Retries(clock, explanations)

    def mark(
        self, slot: Slot, prepared: Transaction, now_ms: int, flushes: list[Flush], left: Left = None
    ) -> Generator[Step, None, None]:
        """Write the missing markers with the timestamp `now_ms`. The decision may be much older, and a marker with its
        time would look expired. Those that cannot be written stay in `slot.unmarked`. `left`: of `commit_plain`."""
        epoch = self._log.partition_log(slot.partition).leader_epoch
        if not self.is_current(slot, prepared):
            return  # its topic was deleted while this step waited for the disk
        waiting = list(slot.unmarked)
        yield from self._mark_each(slot, prepared, epoch, now_ms, flushes, waiting, left)
        if not self.is_current(slot, prepared):
            return
        try:
            yield BEFORE_COMPLETE
        except BaseException:
            # The driver waits for the disk here. After a failed fsync any of the markers may be lost.
            if self.is_current(slot, prepared):
                slot.unmarked = dict.fromkeys(waiting)
            raise

    def _mark_each(
        self,
        slot: Slot,
        prepared: Transaction,
        epoch: int,
        now_ms: int,
        flushes: list[Flush],
        waiting: list[TopicPartition],
        left: Left,
    ) -> Generator[Step, None, None]:
        is_large = len(waiting) > MOST_MARKERS_AT_ONCE
        if left is None:
            left = waiting if is_large else self._without_plain(slot, prepared, epoch, now_ms, waiting)
        for each in left:
            if is_large:
                yield LATER
            if not self.is_current(slot, prepared):
                return
            if self._mark_one(slot, prepared, each, epoch, now_ms, flushes) and self._faults.armed:
                yield AFTER_MARKER, each

    def _without_plain(
        self, slot: Slot, prepared: Transaction, epoch: int, now_ms: int, waiting: list[TopicPartition]
    ) -> list[TopicPartition]:
        if self._faults.armed or slot.refused or not prepared.commits:
            return waiting
        return self.commit_plain(slot, prepared, epoch, now_ms)

    def commit_plain(self, slot: Slot, prepared: Transaction, epoch: int, now_ms: int) -> list[TopicPartition]:
        """Write the markers of a commit about which there is nothing to decide. Returns the partitions of the others,
        without those where the write failed."""
        producer = prepared.producer_id, prepared.producer_epoch
        failures = commit_each(self._logs, slot.unmarked, producer, epoch, prepared.client_version, now_ms)
        for each, error in failures.items():
            self.on_marker_refused(slot, prepared, each, error)
        return [each for each in slot.unmarked if each not in failures]

    def _mark_one(
        self, slot: Slot, prepared: Transaction, each: TopicPartition, epoch: int, now_ms: int, flushes: list[Flush]
    ) -> bool:
        """Write the marker of this partition. Returns whether that was tried."""
        if each in slot.refused:
            return False
        log = self._logs.find(*each)
        if log is None:
            # A deleted partition needs no marker (B17). An offline one may come back.
            if self._metadata.image.partition(*each) is None:
                del slot.unmarked[each]
            return False
        producer_id, producer_epoch, version = prepared.producer_id, prepared.producer_epoch, prepared.client_version
        commits = prepared.state is PREPARE_COMMIT
        try:
            appended = log.append_marker(producer_id, producer_epoch, epoch, commits, version, now_ms)
        except KafkaError as error:
            self.on_marker_refused(slot, prepared, each, error)
        else:
            add_flush(appended.flushed, flushes)
            # Only now: after an exception the marker may be missing, and a duplicate marker does no harm.
            del slot.unmarked[each]
        return True

    def is_current(self, slot: Slot, prepared: Transaction) -> bool:
        """Whether the transaction still waits for its completion: the slot was not deleted with its topic, or made
        again since."""
        return slot.transaction is prepared and self._log.slots.get(prepared.transactional_id) is slot

    def on_marker_refused(
        self, slot: Slot, prepared: Transaction, partition: TopicPartition, error: KafkaError
    ) -> None:
        """Note why the partition has no marker."""
        text = f"marker for {partition[0]}-{partition[1]} refused with {error}"
        is_final = error.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        if is_final:
            # As in Kafka's coordinator: another coordinator wrote a marker there, and the transaction stays prepared
            # (B11, D18).
            text += "; it stays prepared until `kafka-shim transactions force-terminate`"
            slot.stuck = text
            slot.refused |= {partition}
        now_ms = self._clock.now_ms()
        self.retries.say(slot, prepared.transactional_id, partition, now_ms, text, is_final=is_final)


def add_flush(flush: Flush | None, flushes: list[Flush]) -> None:
    """Add an fsync, if there is one."""
    if flush is not None:
        flushes.append(flush)

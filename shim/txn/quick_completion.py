"""The completion of a commit where no step has to wait: one generator, which is resumed once, behind the response."""

from __future__ import annotations

from kafka_shim.errors import KafkaError
from kafka_shim.txn.completion import Completion
from kafka_shim.txn.ending import AFTER_COMPLETE, AFTER_PREPARE
from kafka_shim.txn.marking import MOST_MARKERS_AT_ONCE
from kafka_shim.txn.records import unmarked_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from kafka_shim.outcome import Flush
    from kafka_shim.txn.ending import Step
    from kafka_shim.txn.log import Slot
    from kafka_shim.txn.transaction import TopicPartition, Transaction


class QuickCompletion(Completion):
    """Nearly every transaction ends with a commit to a few partitions, all of which take their marker. What `steps`
    does in three nested generators with a driver is done here in one; if anything is left, the driver runs the rest."""

    def is_quick(self, prepared: Transaction) -> bool:
        """Returns whether `quick_steps` does for this transaction."""
        return prepared.commits and len(prepared.partitions) <= MOST_MARKERS_AT_ONCE and not self._faults.armed

    def quick_steps(
        self, slot: Slot, prepared: Transaction, flushes: list[Flush], producer: tuple[int, int]
    ) -> Generator[Step, None, None]:
        """Write PREPARE, yield, and write the markers and COMPLETE. Yields again if there is something to decide or to
        wait for: what follows are the steps of `steps` behind AFTER_PREPARE, for an `Ending`."""
        # Short, as `TransactionLog.write` is: without memory CPython does not leave a handler of exceptions that is far
        # from the beginning of its function. It tries on for ever, with the GIL: from 257 on the number of the
        # instruction is a new object.
        flush = self._prepare(slot, prepared, producer)
        has_rest = is_ended = False
        left: list[TopicPartition] | None = None
        try:
            if flush is not None:
                flushes.append(flush)
            yield AFTER_PREPARE
            left = self._mark_plain(slot, prepared)
            if left is None or left:
                has_rest = True
                yield AFTER_PREPARE
                yield from self.mark(slot, prepared, prepared.last_update_ms, flushes, left)
            self._complete(slot, prepared, flushes)
            slot.is_ending, is_ended = False, True
            if has_rest or flushes:
                yield AFTER_COMPLETE
        except BaseException as error:
            if not is_ended:
                slot.is_ending = False
            self._interrupted(slot, prepared, producer, error, is_ended)
            raise

    def _prepare(self, slot: Slot, prepared: Transaction, producer: tuple[int, int]) -> Flush | None:
        """Write PREPARE. It counts then: what fails from here on is tried again, also if nobody resumes the steps."""
        slot.pending = slot.is_ending = True
        try:
            unmarked = unmarked_of(prepared.partitions)
            flush = self._log.write(slot, prepared)
        except BaseException as error:
            slot.pending = slot.is_ending = False
            self._interrupted(slot, prepared, producer, error, True)
            raise
        slot.unmarked = unmarked
        return flush

    def _mark_plain(self, slot: Slot, prepared: Transaction) -> list[TopicPartition] | None:
        """Write the markers about which there is nothing to decide. Returns the partitions of the others, or None if
        there is something to decide about all."""
        coordinator_epoch = self._log.partition_log(slot.partition).leader_epoch
        if self._faults.armed or slot.refused or not self.is_current(slot, prepared):
            return None
        return self.commit_plain(slot, prepared, coordinator_epoch, prepared.last_update_ms)

    def finish_marked(
        self,
        slot: Slot,
        prepared: Transaction,
        producer: tuple[int, int],
        failures: dict[TopicPartition, KafkaError] | None,
    ) -> None:
        """Go on with what `cext.plain_end_txn` has prepared and answered. Of `slot.unmarked` it has marked all that are
        no longer there; `failures` are those whose marker could not be written, None if it has tried none."""
        flushes: list[Flush] = []
        steps = self._rest_of(slot, prepared, producer, flushes, failures)
        self.finish_answered(
            self.ending(steps, flushes, prepared.transactional_id, may_hold=True), prepared.transactional_id
        )

    def _rest_of(
        self,
        slot: Slot,
        prepared: Transaction,
        producer: tuple[int, int],
        flushes: list[Flush],
        failures: dict[TopicPartition, KafkaError] | None,
    ) -> Generator[Step, None, None]:
        try:
            left: list[TopicPartition] | None = None
            if failures is not None:
                for each, error in failures.items():
                    self.on_marker_refused(slot, prepared, each, error)
                left = [each for each in slot.unmarked if each not in failures]
            if left is None or left:
                yield from self.mark(slot, prepared, prepared.last_update_ms, flushes, left)
            self._complete(slot, prepared, flushes)
        except BaseException as raised:
            self.not_marked(slot, prepared, producer, raised)
            raise
        finally:
            slot.is_ending = False
        yield AFTER_COMPLETE

    def not_marked(self, slot: Slot, prepared: Transaction, producer: tuple[int, int], error: BaseException) -> None:
        """Have a transaction tried again whose markers met this error."""
        self._interrupted(slot, prepared, producer, error, False)

    def _interrupted(
        self, slot: Slot, prepared: Transaction, producer: tuple[int, int], error: BaseException, is_over: bool
    ) -> None:
        """Note the error that the steps met. Unless they are over, the transaction is tried again, once the caller has
        taken back `is_ending`: there may be no memory for this call, and then no retry would ever be made."""
        if not is_over:
            self._retry_later(slot, prepared)
        if isinstance(error, KafkaError):
            now_ms = prepared.last_update_ms
            self._explanations.refused("EndTxn", prepared.transactional_id, error, now_ms, producer)

    def not_completed(self, slot: Slot, prepared: Transaction, error: BaseException) -> None:
        """Have a transaction tried again whose COMPLETE met this error. Raises it unless it is the log's refusal."""
        slot.is_ending = False
        if not isinstance(error, KafkaError):
            self._retry_later(slot, prepared)
            raise error
        self.retries.say_unended(slot, prepared.transactional_id, self._clock.now_ms(), error)
        self._retry_later(slot, prepared)

    def finish_quick(self, steps: Generator[Step, None, None], flushes: list[Flush], transactional_id: str) -> None:
        """Resume `quick_steps` after the response of EndTxn is sent, which has waited for the flushes."""
        flushes.clear()
        step = next(steps, None)
        if step is not None:
            ending = self.ending(steps, flushes, transactional_id, may_hold=True)
            if step is AFTER_PREPARE:
                self.finish_answered(ending, transactional_id)
            else:
                self._go_on(ending, step, transactional_id)

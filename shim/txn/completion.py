"""The completion of a transaction: PREPARE, a marker in each partition, COMPLETE (TransactionMarkerChannelManager).

PREPARE makes the decision final. A storage failure after it is retried. If another coordinator's marker came first, the
transaction stays prepared (D18). The client gets the result that completion will have. `ending` runs the steps.
"""

from __future__ import annotations

import logging

from kafka_shim.errors import KafkaError
from kafka_shim.turns import Turns
from kafka_shim.txn import state
from kafka_shim.txn.ending import AFTER_PREPARE, BEFORE_COMPLETE, BEFORE_MARKERS, BEFORE_PREPARE, Ending
from kafka_shim.txn.log import flush_of
from kafka_shim.txn.marking import NOTHING_REFUSED, Marking, add_flush
from kafka_shim.txn.records import unmarked_of
from kafka_shim.txn.transaction import STATE_NAMES, TV1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Generator
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flush
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs
    from kafka_shim.txn.ending import Step
    from kafka_shim.txn.explain import Explanations
    from kafka_shim.txn.log import Slot, TransactionLog
    from kafka_shim.txn.transaction import TopicPartition, Transaction

    Steps = Generator[Step, None, Transaction]

logger = logging.getLogger("kafka_shim.txn")


def _log_bug(transactional_id: str, error: Exception) -> None:
    if not isinstance(error, KafkaError):
        logger.error("%s: the transaction cannot be completed, trying again", transactional_id, exc_info=error)


class Completion(Marking):
    """Owned by the coordinator. `stop` ends its timers and tasks."""

    def __init__(
        self,
        log: TransactionLog,
        clock: Clock,
        logs: Logs,
        metadata: MetadataStore,
        faults: Faults,
        explanations: Explanations,
    ) -> None:
        super().__init__(log, clock, logs, metadata, faults, explanations)
        # One share of a turn for the markers of all large transactions.
        self._turns = Turns(clock)
        # Tasks that wait for the disk. asyncio keeps no reference to them.
        self.tasks: set[Task[None]] = set()

    def stop(self) -> None:
        """Stop retries and tasks. The next start resumes prepared transactions."""
        self.retries.stop()
        for task in self.tasks:
            if not task.get_loop().is_closed():
                task.cancel()

    def finish(self, slot: Slot, prepared: Transaction) -> None:
        """Run all steps as far as nothing must be awaited. The rest runs in a task."""
        flushes: list[Flush] = []
        self._drive(self.steps(slot, prepared, flushes), flushes, prepared.transactional_id)

    def _finish_marking(self, slot: Slot, prepared: Transaction) -> None:
        """Write the markers and COMPLETE, later than PREPARE. Every failure is retried, or the transaction would never
        end."""
        flushes: list[Flush] = []

        def steps() -> Steps:
            slot.is_ending = True
            try:
                # The first attempt's fsync of PREPARE may have failed, or the broker was killed before it. A power cut
                # must not keep a marker and lose its decision.
                if (flush := self._log.prepare_flush(slot)) is not None:
                    flushes.append(flush)
                    yield BEFORE_MARKERS
                yield from self.mark(slot, prepared, self._clock.now_ms(), flushes)
                return self._complete(slot, prepared, flushes)
            except BaseException:
                self._retry_later(slot, prepared)
                raise
            finally:
                slot.is_ending = False

        try:
            self._drive(steps(), flushes, prepared.transactional_id)
        except Exception as error:
            _log_bug(prepared.transactional_id, error)

    def _drive(self, steps: Steps, flushes: list[Flush], transactional_id: str) -> None:
        ending = self.ending(steps, flushes, transactional_id, may_hold=False)
        self._go_on(ending, ending.advance(), transactional_id)

    def ending(
        self, steps: Generator[Step, None, Any], flushes: list[Flush], transactional_id: str, *, may_hold: bool
    ) -> Ending:
        """Returns what runs the steps of a completion."""
        return Ending(steps, flushes, transactional_id, self._faults, self._turns, may_hold=may_hold)

    def finish_answered(self, ending: Ending, transactional_id: str) -> None:
        """Write the markers and COMPLETE after the response of EndTxn is sent."""
        step = ending.finish_answered()
        if step is not None:
            self._go_on(ending, step, transactional_id)

    def _go_on(self, ending: Ending, step: Step | None, transactional_id: str) -> None:
        """Run the steps from `step` on, which waits for the disk, in a task."""
        if step is None:
            return
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # At start-up no loop is running.
            while step is not None:
                ending.block(step)
                step = ending.advance()
            return
        task = loop.create_task(self._run_on(ending, step, transactional_id))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @staticmethod
    async def _run_on(ending: Ending, step: Step, transactional_id: str) -> None:
        try:
            await ending.run(step)
        except Exception as error:
            _log_bug(transactional_id, error)

    def steps(self, slot: Slot, prepared: Transaction, flushes: list[Flush]) -> Steps:
        """Write PREPARE, the markers, COMPLETE. Returns the completed value. The fsyncs of each step are added to
        `flushes`, which belongs to the caller that runs the steps."""
        slot.pending = slot.is_ending = True
        try:
            yield BEFORE_PREPARE
            unmarked = unmarked_of(prepared.partitions)
            flush = self._log.write(slot, prepared)
        except BaseException:
            slot.pending = slot.is_ending = False
            raise
        # PREPARE counts: what fails from here on is tried again.
        slot.unmarked = unmarked
        try:
            add_flush(flush, flushes)
            yield AFTER_PREPARE
            yield from self.mark(slot, prepared, prepared.last_update_ms, flushes)
            return self._complete(slot, prepared, flushes)
        except BaseException:
            self._retry_later(slot, prepared)
            raise
        finally:
            slot.is_ending = False

    def _complete(self, slot: Slot, prepared: Transaction, flushes: list[Flush]) -> Transaction:
        """Write COMPLETE if every marker is written, unless the transaction is gone since the caller waited for the
        disk. Returns in every case the completed value, from which the client gets its result."""
        completed = state.complete(prepared, self._clock.now_ms())
        if self.is_current(slot, prepared):
            if not slot.unmarked:
                self._write_complete(slot, prepared, completed, flushes)
            elif not slot.refused.issuperset(slot.unmarked):
                self._retry_later(slot, prepared)
        return completed

    def _write_complete(self, slot: Slot, prepared: Transaction, completed: Transaction, flushes: list[Flush]) -> None:
        try:  # in a function of its own, which is short: `QuickCompletion.quick_steps`
            flush = self._log.write(slot, completed)
        except KafkaError as error:
            self.retries.say_unended(slot, prepared.transactional_id, completed.last_update_ms, error)
            self._retry_later(slot, prepared)
            return
        # Before any call, which may find no memory: COMPLETE counts.
        slot.pending = False
        slot.stuck, slot.refused = "", NOTHING_REFUSED
        self.retries.done(slot)
        add_flush(flush, flushes)

    def _retry_later(self, slot: Slot, prepared: Transaction) -> None:
        def retry() -> None:
            if not self.is_current(slot, prepared):
                return
            if slot.is_ending:
                self._retry_later(slot, prepared)  # `resolve` waits for the disk
            else:
                self._finish_marking(slot, prepared)

        self.retries.later(slot, prepared.transactional_id, retry)

    def retry_forgotten(self, slot: Slot, prepared: Transaction) -> None:
        """Go on with a completion that failed and has no retry: there was no memory for its timer."""
        if not slot.pending or slot.is_ending or prepared.transactional_id in self.retries:
            return
        if not slot.unmarked or not slot.refused.issuperset(slot.unmarked):
            self._finish_marking(slot, prepared)

    def resume_all(self, slots: list[Slot]) -> None:
        """Complete those of these transactions that are prepared. Takes each out of the list once that has begun."""
        while slots:
            slot = slots[-1]
            if slot.transaction is not None and slot.transaction.is_prepared and not slot.pending:
                self._resume(slot, slot.transaction)
            slots.pop()

    def _resume(self, slot: Slot, prepared: Transaction) -> None:
        """Complete a transaction that was prepared when the broker stopped (B12)."""
        direction = "commit" if prepared.commits else "abort"
        self._explanations.noted(
            prepared.transactional_id, self._clock.now_ms(), f"resumed the {direction} that was prepared"
        )
        slot.unmarked = unmarked_of(prepared.partitions)
        slot.pending = True  # behind what needs memory: a pending end without unmarked partitions is complete
        self._finish_marking(slot, prepared)

    def resolve(self, slot: Slot, prepared: Transaction, flushes: list[Flush]) -> list[str]:
        """Force the completion of a transaction that D18 left prepared. A partition where another coordinator's marker
        has ended the transaction needs no further marker. A partition where it is open gets a marker at the partition's
        coordinator epoch. COMPLETE waits until these markers are on the disk, if `flush.messages` requires it. Returns
        a line per step."""
        done: list[str] = []
        waiting = slot.unmarked
        offline = [each for each in waiting if not self._resolve_one(slot, prepared, each, flushes, done)]
        slot.unmarked, slot.stuck, slot.refused = dict.fromkeys(offline), "", NOTHING_REFUSED
        self.retries.done(slot)

        def steps() -> Steps:
            slot.is_ending = True
            try:
                yield BEFORE_COMPLETE
                return self._complete(slot, prepared, flushes)
            except BaseException:
                # After a failed fsync the new markers may be lost.
                if self.is_current(slot, prepared):
                    slot.unmarked = waiting
                self._retry_later(slot, prepared)
                raise
            finally:
                slot.is_ending = False

        self._drive(steps(), flushes, prepared.transactional_id)
        now = slot.transaction
        assert now is not None
        return [*done, f"{'still' if now is prepared else 'now'} {STATE_NAMES[now.state]}"]

    def _resolve_one(
        self, slot: Slot, prepared: Transaction, each: TopicPartition, flushes: list[Flush], done: list[str]
    ) -> bool:
        """Adds what was done to `done`. Returns False if the partition still lacks its marker."""
        topic, partition = each
        log = self._logs.find(topic, partition)
        if log is None and self._metadata.image.partition(topic, partition) is not None:
            done.append(f"{topic}-{partition}: offline, {_later(slot, topic, partition, 'when it is back')}")
            return False
        try:
            done.append(f"{topic}-{partition}: {self._resolve(log, slot, prepared, flushes)}")
        except KafkaError as error:
            done.append(f"{topic}-{partition}: {error}, {_later(slot, topic, partition, 'later')}")
            return False
        return True

    def _resolve(self, log: PartitionLog | None, slot: Slot, prepared: Transaction, flushes: list[Flush]) -> str:
        found = None
        if log is not None:
            statuses = log.producer_statuses()
            found = next((status for status in statuses if status.producer_id == prepared.producer_id), None)
        if log is None or found is None or found.current_txn_start_offset < 0:
            if log is not None:
                add_flush(flush_of(log), flushes)
            return "ended by another marker, left as it is"
        coordinator_epoch = max(found.coordinator_epoch, self._log.partition_log(slot.partition).leader_epoch)
        appended = log.append_marker(
            prepared.producer_id,
            max(prepared.producer_epoch, found.producer_epoch),
            coordinator_epoch,
            prepared.commits,
            TV1,  # whose rule takes the epoch at which the partition is open; an epoch more would fence its producer
            self._clock.now_ms(),
        )
        add_flush(appended.flushed, flushes)
        return f"marked at coordinator epoch {coordinator_epoch}"


def _later(slot: Slot, topic: str, partition: int, when: str) -> str:
    """What comes of a partition without a forced marker: a retry writes one at this coordinator's epoch alone."""
    return f"force it again {when}" if (topic, partition) in slot.refused else f"it gets its marker {when}"

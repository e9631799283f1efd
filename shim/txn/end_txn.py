"""EndTxn, the part of the coordinator that ends a transaction for its client (B10)."""

from __future__ import annotations

from functools import partial

from kafka_shim.errors import KafkaError
from kafka_shim.outcome import Outcome, wait_for
from kafka_shim.txn import state
from kafka_shim.txn.ending import AFTER_COMPLETE, AFTER_PREPARE, ANSWERED
from kafka_shim.txn.transaction import TV2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from kafka_shim.clock import Clock
    from kafka_shim.faults import Faults
    from kafka_shim.outcome import Flush
    from kafka_shim.txn.ending import Ending, Step
    from kafka_shim.txn.explain import Explanations
    from kafka_shim.txn.log import Slot, TransactionLog
    from kafka_shim.txn.producer_ids import ProducerIds
    from kafka_shim.txn.quick_completion import QuickCompletion
    from kafka_shim.txn.transaction import Transaction


class EndTxn:
    """A base of `TransactionCoordinator`, whose attributes it uses."""

    clock: Clock
    completion: QuickCompletion
    explanations: Explanations
    producer_ids: ProducerIds
    _faults: Faults
    _log: TransactionLog

    def _find(self, transactional_id: str) -> tuple[Slot, Transaction]:
        raise NotImplementedError("abstract: the coordinator finds a transactional id here")

    def decide(
        self, transactional_id: str, producer_id: int, producer_epoch: int, commit: bool, client_version: int
    ) -> Outcome[tuple[int, int]]:
        """EndTxn if `must_wait` is false. Returns an outcome with the (producer id, epoch) for TV2, else -1s. The
        outcome's follow-up writes the markers and COMPLETE; it is None if nothing is left to do.

        PREPARE is written, so the result is final.
        """
        flushes: list[Flush] = []
        producer = producer_id, producer_epoch
        slot, txn, is_new = self._decide(transactional_id, producer, commit, client_version, flushes)
        if not is_new:
            return Outcome(_told((txn.producer_id, txn.producer_epoch), client_version), flushes)
        # The fsyncs of the markers come later. COMPLETE waits for them, the response does not.
        if self.completion.is_quick(txn):
            steps = self.completion.quick_steps(slot, txn, flushes, producer)
            next(steps)
            follow_up = partial(self.completion.finish_quick, steps, flushes, transactional_id)
        else:
            ending = self._ending(slot, txn, producer, client_version, flushes)
            ending.advance(AFTER_PREPARE)
            follow_up = partial(self.completion.finish_answered, ending, transactional_id)
        return Outcome(_told(state.identity_after(txn), client_version), tuple(flushes), follow_up)

    def not_prepared(
        self, transactional_id: str, producer_id: int, producer_epoch: int, error: Exception
    ) -> KafkaError:
        """Returns the refusal of an EndTxn whose PREPARE the fast path could not write. Raises what is a bug."""
        if not isinstance(error, KafkaError):
            raise error
        producer = producer_id, producer_epoch
        self.explanations.refused("EndTxn", transactional_id, error, self.clock.now_ms(), producer)
        return error

    def must_wait(self, transactional_id: str) -> bool:
        """Returns whether the response waits for the whole completion: for the disk, or for a test at its steps."""
        return self._faults.is_armed_besides(ANSWERED) or self._log.wants_flush(transactional_id)

    async def end_stepwise(
        self, transactional_id: str, producer_id: int, producer_epoch: int, commit: bool, client_version: int
    ) -> tuple[int, int]:
        """EndTxn whose response is sent after the completion. `faults` may hold, drop or crash at each step. If
        `flush.messages` requires it, the record of each step is on the disk before the next step. A power cut between
        two fsyncs must leave neither a marker without its decision nor a completed transaction without its markers."""
        flushes: list[Flush] = []
        producer = producer_id, producer_epoch
        slot, txn, is_new = self._decide(transactional_id, producer, commit, client_version, flushes)
        told = _told((txn.producer_id, txn.producer_epoch), client_version)
        if is_new:
            told = await self._ending(slot, txn, producer, client_version, flushes).run()
        try:
            await wait_for(flushes)  # a retry has no step that waits for them
        except KafkaError as error:
            self.explanations.refused("EndTxn", transactional_id, error, self.clock.now_ms(), producer)
            raise
        return told

    def _decide(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        commit: bool,
        client_version: int,
        flushes: list[Flush],
    ) -> tuple[Slot, Transaction, bool]:
        """Returns the slot, what the transaction is to be, and whether that is not what it is. Nothing is written yet
        but the block of a new producer id, whose fsync is added to `flushes`."""
        now_ms = self.clock.now_ms()
        try:
            slot, current = self._find(transactional_id)
            new_id = partial(self.producer_ids.next, flushes)
            txn = state.end(current, *producer, commit, client_version, now_ms, new_id, slot.pending)
            if txn is current and client_version >= TV2:  # the others are told no id
                self.producer_ids.pending(txn.producer_id, flushes)
        except KafkaError as error:
            self.explanations.refused("EndTxn", transactional_id, error, now_ms, producer)
            raise
        return slot, txn, txn is not current

    def _ending(
        self, slot: Slot, txn: Transaction, producer: tuple[int, int], client_version: int, flushes: list[Flush]
    ) -> Ending:
        steps = self._end(slot, txn, producer, client_version, flushes)
        return self.completion.ending(steps, flushes, txn.transactional_id, may_hold=True)

    def _end(
        self, slot: Slot, txn: Transaction, producer: tuple[int, int], client_version: int, flushes: list[Flush]
    ) -> Generator[Step, None, tuple[int, int]]:
        now_ms = txn.last_update_ms
        try:
            txn = yield from self.completion.steps(slot, txn, flushes)
            yield AFTER_COMPLETE
        except KafkaError as error:
            self.explanations.refused("EndTxn", txn.transactional_id, error, now_ms, producer)
            raise
        return _told((txn.producer_id, txn.producer_epoch), client_version)


def _told(identity: tuple[int, int], client_version: int) -> tuple[int, int]:
    """Returns the (producer id, epoch) for the EndTxn response: -1s below TV2."""
    return identity if client_version >= TV2 else (-1, -1)

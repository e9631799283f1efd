"""Runs the completion of a transaction: for EndTxn, fencing InitProducerIds, timeouts, retries and start-up.

The completion is a generator (`Completion.steps`): it writes one record and yields a step. The driver reaches the fault
point of that step and, if `flush.messages` requires it, waits until the record is on the disk.
"""

from __future__ import annotations

from kafka_shim.outcome import block_on, wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from kafka_shim.faults import Faults
    from kafka_shim.outcome import Flush
    from kafka_shim.turns import Steps, Turns
    from kafka_shim.txn.transaction import TopicPartition

    # A fault point, and the partition of the marker.
    Step = tuple[str, TopicPartition | None]

BEFORE_PREPARE: Step = ("txn.before_prepare", None)
AFTER_PREPARE: Step = ("txn.after_prepare", None)
# Only when the markers are written later than PREPARE, and PREPARE is not known to be on the disk.
BEFORE_MARKERS: Step = ("txn.before_markers", None)
# The fault point after each marker.
AFTER_MARKER = "txn.after_marker"
BEFORE_COMPLETE: Step = ("txn.before_complete", None)
AFTER_COMPLETE: Step = ("txn.after_complete", None)
# No fault point: before each marker of a transaction of very many partitions, which follow on later turns of the loop.
LATER: Step = ("", None)
# The fault point after the response is sent: before the first marker and after each.
ANSWERED = "txn.answered"
# The steps at which earlier records must be on the disk before anything else is written.
DISK_FIRST = frozenset((AFTER_PREPARE, BEFORE_MARKERS, BEFORE_COMPLETE, AFTER_COMPLETE))


class Ending:
    """One completion of one transaction. `advance` runs until something must be awaited; `run` awaits it and runs to
    the end. An exception of a fault point or of an fsync is raised inside the generator, at its step."""

    __slots__ = ("_faults", "_is_answered", "_may_hold", "_steps", "_transactional_id", "_turns", "flushes", "outcome")

    def __init__(
        self,
        steps: Generator[Step, None, Any],
        flushes: list[Flush],
        transactional_id: str,
        faults: Faults,
        turns: Turns,
        *,
        may_hold: bool,
    ) -> None:
        self._steps = steps
        # The fsyncs of written records. The steps add to it.
        self.flushes = flushes
        self._transactional_id = transactional_id
        self._faults = faults
        self._turns = turns
        # Whether a test may hold it at a step. True only for a client's EndTxn that waits for its response.
        self._may_hold = may_hold
        self._is_answered = False
        # What the generator returned.
        self.outcome: Any = None

    def advance(self, until: Step | None = None) -> Step | None:
        """Run to the end, to `until`, or to the first step at which something must be awaited: a hold, an fsync or
        a later turn of the loop. Returns that step, or None at the end."""
        steps, faults = self._steps, self._faults
        try:
            while True:
                step = next(steps)
                if step is LATER:
                    return step
                if faults.armed:
                    if self._may_hold and faults.holds(step[0]):
                        return step
                    self._reach(step)
                if step is until or (self.flushes and step in DISK_FIRST):
                    return step
        except StopIteration as done:
            self.outcome = done.value
            return None

    async def run(self, step: Step | None = None) -> Any:
        """Await what `step` waits for, if it is given, then run to the end. Returns the outcome."""
        if step is None:
            step = self.advance()
        while step is not None:
            if step is LATER:
                step = await self._turns.run(self._until_it_waits(), None)
            else:
                await self._wait(step)
                step = self.advance()
        return self.outcome

    def _until_it_waits(self) -> Steps[Step | None]:
        """Returns what `advance` does, unless that is a later turn."""
        while (step := self.advance()) is LATER:
            yield
        return step

    def block(self, step: Step) -> None:
        """Block until the fsyncs that `step` waits for are done (a start, before the event loop runs). Raises
        NOT_COORDINATOR if one failed."""
        try:
            if self.flushes and step in DISK_FIRST:
                block_on(self.flushes)
                self.flushes.clear()
        except BaseException as error:
            self._steps.throw(error)
            raise

    async def _wait(self, step: Step) -> None:
        try:
            if self._may_hold and self._faults.holds(step[0]):
                await self._faults.gate(step[0], **self._facts(step))
            if self.flushes and step in DISK_FIRST:
                await wait_for(self.flushes)
                self.flushes.clear()
        except BaseException as error:
            self._steps.throw(error)
            raise

    def finish_answered(self) -> Step | None:
        """Run on after the response is sent. Returns the step before which markers must be on the disk or another turn
        must come, or None at the end."""
        flushes = self.flushes
        flushes.clear()  # the response has waited for these
        if not self._faults.armed:
            for step in self._steps:
                if step is LATER or (flushes and step in DISK_FIRST):
                    return step
            return None
        self._is_answered = True
        self._act(ANSWERED, AFTER_PREPARE)
        return self.advance()

    def _reach(self, step: Step) -> None:
        self._act(step[0], step)
        if self._is_answered and step[0] == AFTER_MARKER:
            self._act(ANSWERED, AFTER_PREPARE)

    def _act(self, point: str, step: Step) -> None:
        try:
            self._faults.reach(point, **self._facts(step))
        except BaseException as error:
            self._steps.throw(error)
            raise

    def _facts(self, step: Step) -> dict[str, object]:
        """The facts by which an armed fault point may be restricted (`where`)."""
        facts: dict[str, object] = {"transactional_id": self._transactional_id}
        if step[1] is not None:
            facts["topic"], facts["partition"] = step[1]
        return facts

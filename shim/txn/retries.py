"""The retries of transactions whose completion failed: when each is tried again, and what is said of it."""

from __future__ import annotations

import logging
from contextlib import suppress

from kafka_shim.line_limit import LineLimit
from kafka_shim.txn.log import NOTHING_SAID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.clock import Clock, Timer
    from kafka_shim.errors import KafkaError
    from kafka_shim.txn.explain import Explanations
    from kafka_shim.txn.log import Slot
    from kafka_shim.txn.transaction import TopicPartition

logger = logging.getLogger("kafka_shim.txn")

FIRST_PAUSE_MS = 100
# The pause doubles up to this one: a full disk may have refused the markers of thousands of transactions.
LONGEST_PAUSE_MS = 3200
# Partitions of a transaction whose reasons are said, at most.
MOST_SAID = 100
# Stands for the others. No topic has this name.
REST = ("", -1)


class Retries:
    """Owned by `Completion`. One retry an id. `stop` ends them for good."""

    def __init__(self, clock: Clock, explanations: Explanations) -> None:
        self._clock = clock
        self._explanations = explanations
        self._lines = LineLimit(logger, clock, level=logging.INFO)
        self._warnings = LineLimit(logger, clock)
        self._timers: dict[str, tuple[Timer, Callable[[], None]]] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """Cancel all. The next start resumes prepared transactions."""
        self._is_stopped = True
        for timer, _ in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._lines.close()
        self._warnings.close()

    def at_once(self) -> None:
        """Have each tried now instead of after its pause. One for which no memory is left is not: the stop goes on."""
        for timer, run in list(self._timers.values()):
            timer.cancel()
            with suppress(MemoryError):
                run()

    def __contains__(self, transactional_id: str) -> bool:
        return transactional_id in self._timers

    def later(self, slot: Slot, transactional_id: str, retry: Callable[[], None]) -> None:
        """Call `retry()` after a pause, which is twice as long as the one before."""
        if self._is_stopped:
            return

        def run() -> None:
            self._timers.pop(transactional_id, None)
            retry()

        # `resolve`, or an id that was created again, may come while the timer of an earlier failure still runs.
        if (earlier := self._timers.pop(transactional_id, None)) is not None:
            earlier[0].cancel()
        slot.pause_ms = min(2 * slot.pause_ms, LONGEST_PAUSE_MS) or FIRST_PAUSE_MS
        self._timers[transactional_id] = self._clock.call_later(slot.pause_ms, run), run

    def say(
        self,
        slot: Slot,
        transactional_id: str,
        partition: TopicPartition | None,
        now_ms: int,
        text: str,
        *,
        is_final: bool = False,
    ) -> None:
        """Note in the history and in the log why a marker, or COMPLETE if `partition` is None, could not be written.
        Each retry meets the same reason: it is said once; as a warning if there is no retry (`is_final`). Of very many
        partitions the first `MOST_SAID` have theirs."""
        said = slot.said
        if said.get(partition) == text:
            return
        if partition not in said and len(said) >= MOST_SAID and partition is not None:
            if REST in said:
                return
            partition, text = REST, "markers for more partitions are refused"
        if said is NOTHING_SAID:
            said = slot.said = {}
        said[partition] = text
        self._explanations.noted(transactional_id, now_ms, text, self._warnings if is_final else self._lines)

    def say_unended(self, slot: Slot, transactional_id: str, now_ms: int, error: KafkaError) -> None:
        """As `say`, of COMPLETE."""
        self.say(slot, transactional_id, None, now_ms, f"cannot write the end, trying on: {error}")

    @staticmethod
    def done(slot: Slot) -> None:
        """Forget what the next transaction of the id begins without."""
        slot.pause_ms = 0
        slot.said = NOTHING_SAID
